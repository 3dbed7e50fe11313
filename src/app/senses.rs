//! What the pointer is over, as events: hover, leave, click, double click, each about a target.
//!
//! Hits come from outside (the GPU's answers in a window, the CPU reference offline), so that both
//! give the same events. It knows no device and has no clock.

use crate::frame::{Event, Hit};

/// Two clicks on one target closer together than this are a double click, seconds. Desktops use 0.4
/// to 0.5.
const DOUBLE_CLICK_S: f64 = 0.4;

/// What the pointer is over: a target, and the row of its splat that is met there.
pub type Met = (u32, u32);

/// What a hit says to scripts.
#[must_use]
pub fn met(hit: Option<Hit>) -> Option<Met> {
    hit.map(|hit| (hit.target, hit.row))
}

/// The memory between two pictures.
#[derive(Debug, Default)]
pub struct Senses {
    over: Option<u32>,
    row: Option<u32>,
    clicked: Option<(f64, Option<u32>)>,
}

impl Senses {
    /// The target under the pointer.
    #[must_use]
    pub fn over(&self) -> Option<u32> {
        self.over
    }

    /// What the pointer has `met` now: the events that follow, a leave before a hover.
    pub fn see(&mut self, met: Option<Met>, pointer: [f64; 2]) -> Vec<Event> {
        let target = met.map(|(target, _)| target);
        self.row = met.map(|(_, row)| row);
        let before = std::mem::replace(&mut self.over, target);
        if before == target {
            return Vec::new();
        }
        let event = |kind: &str, target| Event {
            kind: kind.to_owned(),
            name: String::new(),
            values: pointer.to_vec(),
            target,
            row: None,
        };
        let leave = before.is_some().then(|| event("leave", before));
        let hover = target.is_some().then(|| event("hover", target));
        leave.into_iter().chain(hover).collect()
    }

    /// Gives clicks the target that they are on, and lets a double click follow the second of two.
    /// `now_s` counts from any start.
    pub fn complete(&mut self, events: Vec<Event>, now_s: f64) -> Vec<Event> {
        let mut all = Vec::with_capacity(events.len());
        for mut event in events {
            if event.kind != "click" {
                all.push(event);
                continue;
            }
            (event.target, event.row) = (self.over, self.row);
            let is_second = self.clicked.is_some_and(|(at_s, target)| {
                target == self.over && now_s - at_s <= DOUBLE_CLICK_S
            });
            // A third click begins anew.
            self.clicked = (!is_second).then_some((now_s, self.over));
            let second = is_second.then(|| Event {
                kind: "double_click".to_owned(),
                ..event.clone()
            });
            all.push(event);
            all.extend(second);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(events: &[Event]) -> Vec<(&str, Option<u32>)> {
        events.iter().map(|e| (e.kind.as_str(), e.target)).collect()
    }

    fn click() -> Event {
        Event {
            kind: "click".to_owned(),
            name: "mouse_left".to_owned(),
            values: vec![0.0, 0.0],
            target: None,
            row: None,
        }
    }

    #[test]
    fn leaving_one_for_another_says_both() {
        let mut senses = Senses::default();
        let seen = senses.see(Some((1, 5)), [0.0; 2]);
        assert_eq!(kinds(&seen), [("hover", Some(1))]);
        assert!(
            senses.see(Some((1, 5)), [0.1, 0.0]).is_empty(),
            "still there"
        );
        let seen = senses.see(Some((2, 5)), [0.2, 0.0]);
        assert_eq!(kinds(&seen), [("leave", Some(1)), ("hover", Some(2))]);
        assert_eq!(kinds(&senses.see(None, [0.0; 2])), [("leave", Some(2))]);
    }

    #[test]
    fn a_click_says_which_splat_it_met() {
        let mut senses = Senses::default();
        senses.see(Some((1, 5)), [0.0; 2]);
        senses.see(Some((1, 9)), [0.0; 2]);
        assert_eq!(senses.complete(vec![click()], 1.0)[0].row, Some(9));
        senses.see(None, [0.0; 2]);
        assert_eq!(senses.complete(vec![click()], 9.0)[0].row, None);
    }

    #[test]
    fn two_quick_clicks_on_one_target_are_a_double_click() {
        let mut senses = Senses::default();
        senses.see(Some((3, 5)), [0.0; 2]);
        assert_eq!(
            kinds(&senses.complete(vec![click()], 1.0)),
            [("click", Some(3))]
        );
        let second = senses.complete(vec![click()], 1.3);
        assert_eq!(
            kinds(&second),
            [("click", Some(3)), ("double_click", Some(3))]
        );
        assert_eq!(
            kinds(&senses.complete(vec![click()], 1.4)),
            [("click", Some(3))],
            "third"
        );
        assert_eq!(
            kinds(&senses.complete(vec![click()], 3.0)),
            [("click", Some(3))],
            "late"
        );
        senses.see(None, [0.0; 2]);
        assert_eq!(
            kinds(&senses.complete(vec![click()], 3.1)),
            [("click", None)],
            "elsewhere"
        );
    }
}
