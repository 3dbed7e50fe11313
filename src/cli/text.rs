//! Answers for people. Programs take `--json`.

use serde_json::Value;
use std::fmt::Write as _;

/// `1 picture`, `90 pictures`.
pub fn pictures(count: usize) -> String {
    let noun = if count == 1 { "picture" } else { "pictures" };
    format!("{count} {noun}")
}

/// `x.wav: 68.0 s, -21.3 LUFS, true peak -3.1 dBTP`.
pub fn sound(report: &Value) -> String {
    let level = |name: &str| match report[name].as_f64() {
        Some(db) => format!("{db:.1}"),
        None => "-inf".to_owned(),
    };
    format!(
        "{}: {:.2} s, {} LUFS, true peak {} dBTP",
        report["output"].as_str().unwrap_or_default(),
        report["seconds"].as_f64().unwrap_or_default(),
        level("lufs"),
        level("true_peak_dbtp"),
    )
}

/// What a survey found, in a few lines.
pub fn survey(report: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let [x, y, z] = [0, 1, 2].map(|i| number(&report["up"][i]));
    let output = report["output"].as_str().unwrap_or_default();
    let file = report["scan"]["file"].as_str().unwrap_or_default();
    let how = report["scan"]["how"].as_str().unwrap_or_default();
    let hint = report["hint"].as_str();
    let hint = hint.map_or(String::new(), |hint| format!("hint: {hint}\n"));
    format!(
        "up: {x:.3} {y:.3} {z:.3}\n\
         floor: {:.1} m2, {:.2} to {:.2} m high along the way\n\
         rooms: {}, {} on the way\n\
         way: {:.1} m, {:.0} s, {:.2} m clear on each side, {} looks\n\
         scan: {output}/{file}, {how}\n\
         {hint}play it: splatstage {output}\n",
        number(&report["floor_m2"]),
        number(&report["floor_m"]["lowest"]),
        number(&report["floor_m"]["highest"]),
        report["rooms"].as_array().map_or(0, Vec::len),
        number(&report["rooms_visited"]),
        number(&report["length_m"]),
        number(&report["duration_s"]),
        number(&report["clearance_m"]),
        number(&report["looks"]),
    )
}

/// A document as indented lines `name: value`; what is empty is left out.
pub fn tree(document: &Value) -> String {
    let mut text = String::new();
    if let Value::Object(fields) = document {
        for (name, value) in fields {
            add(&mut text, 0, &name.replace('_', " "), value);
        }
    }
    text
}

fn add(text: &mut String, depth: usize, name: &str, value: &Value) {
    let indent = "  ".repeat(depth);
    // Writing into a String cannot fail.
    let mut line = |shown: &str| {
        let _ = writeln!(text, "{indent}{name}: {shown}");
    };
    match value {
        Value::Null => line("none"),
        Value::Array(items) if items.is_empty() => line("none"),
        Value::Object(fields) if fields.is_empty() => line("none"),
        Value::Array(items) if !items.iter().any(|i| i.is_object() || i.is_string()) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            line(&items.join(" "));
        }
        Value::Array(items) => {
            line("");
            for item in items {
                entry(text, depth + 1, item);
            }
        }
        Value::Object(fields) => {
            line("");
            for (name, value) in fields {
                add(text, depth + 1, &name.replace('_', " "), value);
            }
        }
        _ => line(&scalar(value)),
    }
}

/// One item of a list: its fields on lines of their own, the first after a dash.
fn entry(text: &mut String, depth: usize, item: &Value) {
    let Value::Object(fields) = item else {
        let _ = writeln!(text, "{}- {}", "  ".repeat(depth), scalar(item));
        return;
    };
    let start = text.len();
    for (name, value) in fields {
        add(text, depth + 1, &name.replace('_', " "), value);
    }
    // The indentation of the first line becomes a dash.
    let dash = start + 2 * depth;
    if text.len() > dash + 2 {
        text.replace_range(dash..dash + 2, "- ");
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(v) if number.is_f64() => {
                let text = format!("{v:.4}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// What `bench` found, as a table.
pub fn bench(report: &Value) -> String {
    let number = |name: &str| report[name].as_f64();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}, {}, {}x{}: {} splats, {} visible, {} bytes per splat",
        report["adapter"].as_str().unwrap_or_default(),
        report["raster"].as_str().unwrap_or_default(),
        report["size"][0],
        report["size"][1],
        report["count"],
        report["visible"],
        report["bytes_per_splat"],
    );
    let mut row = |name: &str, ms: Option<f64>| {
        if let Some(ms) = ms {
            let _ = writeln!(text, "  {name:<16}{ms:>10.3} ms");
        }
    };
    for (name, ms) in report["stages"].as_object().into_iter().flatten() {
        row(name, ms.as_f64());
    }
    row("GPU, all stages", number("gpu_ms"));
    row("CPU", number("cpu_ms"));
    row("whole picture", number("total_ms"));
    row("script", number("script_ms"));
    row("disk to GPU", number("load_ms"));
    let _ = writeln!(text, "medians of {} pictures", report["frames"]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_become_indented_lines() {
        let document = json!({
            "sh_degree": 3,
            "bounds": { "min": [-1.5, 0.0, 2.0] },
            "warnings": [],
            "levels": [{ "level": 0, "present": true }, { "level": 1, "present": false }],
        });
        let expected = "sh degree: 3\n\
                        bounds: \n  min: -1.5 0 2\n\
                        warnings: none\n\
                        levels: \n  - level: 0\n    present: yes\n  - level: 1\n    present: no\n";
        assert_eq!(tree(&document), expected);
    }
}
