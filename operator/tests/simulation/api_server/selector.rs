//! Label and field selectors of list, watch and deletecollection.

use serde_json::Value;

use super::failure::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// A conjunction of requirements on labels and fields; empty matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

impl Selector {
    /// Parses the query parameters `labelSelector` and `fieldSelector`.
    pub(crate) fn parse(labels: Option<&str>, fields: Option<&str>) -> Result<Self, Failure> {
        let parse = |text: Option<&str>| -> Result<Vec<Requirement>, Failure> {
            split_outside_parentheses(text.unwrap_or_default())
                .iter()
                .map(|part| requirement(part))
                .collect()
        };
        Ok(Self {
            labels: parse(labels)?,
            fields: parse(fields)?,
        })
    }

    /// True if it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels
            .iter()
            .all(|requirement| requirement.holds(|key| object["metadata"]["labels"][key].as_str()))
            && self
                .fields
                .iter()
                .all(|requirement| requirement.holds(|path| field(object, path)))
    }
}

/// The value at a dotted path; a missing field is the empty string, as in the real server.
fn field<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    let mut value = object;
    for part in path.split('.') {
        value = &value[part];
    }
    Some(value.as_str().unwrap_or_default())
}

impl Requirement {
    fn holds<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::In(key, values) => {
                lookup(key).is_some_and(|value| values.iter().any(|allowed| allowed == value))
            }
            Self::NotIn(key, values) => {
                !lookup(key).is_some_and(|value| values.iter().any(|refused| refused == value))
            }
            Self::Exists(key) => lookup(key).is_some(),
            Self::Absent(key) => lookup(key).is_none(),
        }
    }
}

fn split_outside_parentheses(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(character);
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn requirement(text: &str) -> Result<Requirement, Failure> {
    let text = text.trim();
    let words = |list: &str| -> Vec<String> {
        list.trim()
            .trim_start_matches('(')
            .trim_end_matches(')')
            .split(',')
            .map(|word| word.trim().to_owned())
            .collect()
    };
    for (operator, negative) in [(" notin ", true), (" in ", false)] {
        if let Some((key, list)) = text.split_once(operator) {
            let key = key.trim().to_owned();
            return Ok(if negative {
                Requirement::NotIn(key, words(list))
            } else {
                Requirement::In(key, words(list))
            });
        }
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(
            key.trim().to_owned(),
            vec![value.trim().to_owned()],
        ));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(
            key.trim().to_owned(),
            vec![value.trim().to_owned()],
        ));
    }
    if text.contains(' ') {
        return Err(Failure::bad_request(format!(
            "unable to parse requirement: {text}"
        )));
    }
    Ok(match text.strip_prefix('!') {
        Some(key) => Requirement::Absent(key.trim().to_owned()),
        None => Requirement::Exists(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_operator_selects_as_documented() {
        let object = json!({"metadata": {"name": "a", "labels": {"app": "db", "tier": "1"}}, "status": {"phase": "Running"}});
        let table = [
            ("app=db", "", true),
            ("app==db,tier=1", "", true),
            ("app!=db", "", false),
            ("missing!=x", "", true),
            ("app in (web, db)", "", true),
            ("app notin (web,db)", "", false),
            ("app", "", true),
            ("!app", "", false),
            ("!missing", "", true),
            ("", "metadata.name=a", true),
            ("", "metadata.name!=a", false),
            ("", "status.phase=Running,spec.nodeName=", true),
        ];
        for (labels, fields, expected) in table {
            let selector = Selector::parse(Some(labels), Some(fields)).unwrap();
            assert_eq!(selector.matches(&object), expected, "{labels} {fields}");
        }
        assert!(Selector::parse(Some("a b"), None).is_err());
    }
}
