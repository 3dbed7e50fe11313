//! The state machines of a scene as a graph: DOT for other programs, SVG to look at.
//!
//! The machines are those that the scene makes with `@stage/states` while it loads; nothing is played. Where
//! nodes lie the layout-rs crate works out.
//!
//! Source: the DOT language, <https://graphviz.org/doc/info/lang.html>.

use crate::script::Chart;
use anyhow::bail;
use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Charts as one directed graph; a state with two rings is where a machine begins, dashed arrows come from any
/// state.
#[must_use]
pub fn dot(charts: &[Chart]) -> String {
    let mut text = String::from("digraph states {\n");
    // Writing to a String cannot fail, here and below.
    for (number, chart) in (1..).zip(charts) {
        let id = |name: &str| quoted(&format!("{number}.{name}"));
        for name in &chart.states {
            let shape = if *name == chart.first {
                "doublecircle"
            } else {
                "ellipse"
            };
            let _ = writeln!(
                text,
                "  {} [label={}, shape={shape}];",
                id(name),
                quoted(name)
            );
        }
        if chart.ways.iter().any(|way| way.from == "*") {
            let _ = writeln!(text, "  {} [label=\"any\", shape=box];", id("*"));
        }
        // A way may be there for several reasons.
        let ways: BTreeSet<(&str, &str)> = (chart.ways.iter())
            .map(|way| (way.from.as_str(), way.to.as_str()))
            .collect();
        for (from, to) in ways {
            let style = if from == "*" { " [style=dashed]" } else { "" };
            let _ = writeln!(text, "  {} -> {}{style};", id(from), id(to));
        }
    }
    text.push_str("}\n");
    text
}

/// A text in DOT's quotes.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace(['\n', '\r'], " "))
}

/// The same graph as a picture.
///
/// # Errors
/// There is nothing to draw, or the layout does not understand a name.
pub fn svg(charts: &[Chart]) -> anyhow::Result<String> {
    if charts.iter().all(|chart| chart.states.is_empty()) {
        bail!("the scene has made no state machine of @stage/states while it loaded");
    }
    let dot = dot(charts);
    let graph = match DotParser::new(&dot).process() {
        Ok(graph) => graph,
        Err(why) => bail!("the graph cannot be laid out: {why}"),
    };
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&graph);
    let mut picture = SVGWriter::new();
    builder.get().do_it(false, false, false, &mut picture);
    Ok(picture.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Way;

    #[test]
    fn every_state_and_way_is_drawn_once() {
        let way = |from: &str, to: &str| Way {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let chart = Chart {
            states: vec!["click".into(), "hover \"near\"".into(), "idle".into()],
            first: "idle".into(),
            ways: vec![way("idle", "hover \"near\""), way("*", "click")],
            strangers: Vec::new(),
        };
        let text = dot(std::slice::from_ref(&chart));
        assert_eq!(text.matches("->").count(), 2);
        assert!(text.contains("\"1.idle\" [label=\"idle\", shape=doublecircle]"));
        let picture = svg(&[chart]).unwrap();
        for name in ["click", "near", "idle", "any"] {
            assert!(picture.contains(name), "{name}");
        }
        assert!(svg(&[]).is_err());
    }
}
