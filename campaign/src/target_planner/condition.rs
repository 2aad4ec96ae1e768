//! Conditions of any kind's status: set so that transition times survive, read by type.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Sets a condition. Its transition time changes only when its status does.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let status = if holds { "True" } else { "False" };
    let message = clip(message, 512);
    let found = conditions.iter_mut().find(|c| c.type_ == type_);
    let since = found
        .as_ref()
        .filter(|c| c.status == status)
        .map(|c| c.last_transition_time.clone());
    let condition = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(generation),
        last_transition_time: since.unwrap_or(Time(now)),
    };
    match found {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// Takes a condition out.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|c| c.type_ != type_);
}

/// Whether a condition is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|c| c.type_ == type_ && c.status == "True")
}

/// Reason of a condition, if it is there.
pub fn reason<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a str> {
    conditions
        .iter()
        .find(|c| c.type_ == type_)
        .map(|c| c.reason.as_str())
}

/// Since when a condition has its status, if it is there.
pub fn since(conditions: &[Condition], type_: &str) -> Option<Timestamp> {
    let found = conditions.iter().find(|c| c.type_ == type_)?;
    Some(found.last_transition_time.0)
}

/// Message of a condition, if it is there.
pub fn message<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a str> {
    conditions
        .iter()
        .find(|c| c.type_ == type_)
        .map(|c| c.message.as_str())
}

/// What stands for the part that was cut off.
const CUT: &str = "…";

/// The text, cut to so many bytes between two characters.
pub fn clip(text: &str, bytes: usize) -> String {
    let text = text.trim();
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes - CUT.len());
    format!("{}{CUT}", &text[..end])
}

/// The end of the text (a server says last why it gave up), cut to so many bytes between two characters.
pub fn tail(text: &str, bytes: usize) -> String {
    let text = text.trim();
    if text.len() <= bytes {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - (bytes - CUT.len()));
    format!("{CUT}{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_time_changes_only_with_the_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        set(&mut conditions, "Ready", false, "Booting", "starts", 1, at(10));
        set(
            &mut conditions,
            "Ready",
            false,
            "Unschedulable",
            "no node",
            1,
            at(20),
        );
        assert_eq!(conditions[0].last_transition_time, Time(at(10)));
        assert_eq!(reason(&conditions, "Ready"), Some("Unschedulable"));
        set(&mut conditions, "Ready", true, "Running", "answers", 2, at(30));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].last_transition_time, Time(at(30)));
        assert!(is_true(&conditions, "Ready"));
        remove(&mut conditions, "Ready");
        assert!(conditions.is_empty());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(clip(" short ", 512), "short");
        let long = "ä".repeat(400);
        for text in [clip(&long, 512), tail(&long, 512)] {
            assert!(text.len() <= 512 && text.len() > 500, "{}", text.len());
        }
    }
}
