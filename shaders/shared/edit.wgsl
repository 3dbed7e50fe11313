// Soft solid shapes that fade, tint or push the splats inside them, and splats as they stand: posed,
// then edited. Distances by Quilez, "Distance functions". CPU twin: src/scene/edit.rs.

// Posed splats of a body, two a splat: centre; turn. One entry where there is no pose.
@group(1) @binding(2) var<storage, read> posed_splats: array<vec4<f32>>;

// A splat in its place.
struct Standing {
    splat: Splat,
    // Takes directions from the rest pose to this one.
    turn: vec4<f32>,
    tint: vec3<f32>,
}

fn solid_distance(edit: Edit, p: vec3<f32>) -> f32 {
    switch edit.kind {
        case 0u: { return length(p) - edit.size.x; }
        case 1u: {
            let q = abs(p) - edit.size;
            return length(max(q, vec3<f32>(0.0))) + min(max(q.x, max(q.y, q.z)), 0.0);
        }
        case 2u: {
            let k0 = length(p / edit.size);
            let k1 = length(p / (edit.size * edit.size));
            if k1 > 0.0 {
                return k0 * (k0 - 1.0) / k1;
            }
            return -min(edit.size.x, min(edit.size.y, edit.size.z));
        }
        case 3u: { return p.y; }
        default: {
            let along = clamp(p.y, -edit.size.y, edit.size.y);
            return length(p - vec3<f32>(0.0, along, 0.0)) - edit.size.x;
        }
    }
}

// How much of the effect a splat at p takes.
fn edit_amount(edit: Edit, p: vec3<f32>) -> f32 {
    let d = solid_distance(edit, turned_back(edit.rotation, p - edit.centre)) * edit.side;
    if edit.soft_edge_m > 0.0 {
        return clamp(0.5 - d / edit.soft_edge_m, 0.0, 1.0);
    }
    return select(0.0, 1.0, d <= 0.0);
}

fn load_standing(index: u32) -> Standing {
    var splat = load_splat(index);
    var turn = vec4<f32>(0.0, 0.0, 0.0, 1.0);
    var tint = vec3<f32>(1.0);
    if page.is_posed != 0u {
        splat.mean = posed_splats[2u * index].xyz;
        turn = posed_splats[2u * index + 1u];
        splat.rotation = product(turn, splat.rotation);
    }
    var shift = vec3<f32>(0.0);
    for (var i = 0u; i < page.edit_count; i++) {
        let m = edit_amount(page.edits[i], splat.mean);
        splat.opacity *= 1.0 + m * (page.edits[i].opacity - 1.0);
        tint *= 1.0 + m * (page.edits[i].tint - 1.0);
        shift += m * page.edits[i].displace;
    }
    splat.mean += shift;
    return Standing(splat, turn, tint);
}
