//! The catalogue of parameters as `pg_settings` gives it to a session that has just begun, which is what load gets: with
//! what the files, `ALTER SYSTEM`, the role and the database say.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::{Wire, column};
use crate::access::Result;
use crate::catalogue::{Catalogue, Kind, Variable};

/// `reset_val` is what a session begins with; `setting` may be what we set for our own.
const COLUMNS: &str = "SELECT lower(name), coalesce(reset_val, setting, ''), vartype, coalesce(unit, ''), context, min_val, \
                       max_val, coalesce(array_to_string(enumvals, ','), ''), CASE WHEN pending_restart THEN 'pending \
                       restart' ELSE coalesce(sourcefile, source) END FROM pg_settings";

/// One parameter as the server lists it.
#[derive(Clone, Debug, Default)]
struct Listed {
    name: String,
    value: String,
    kind: String,
    unit: String,
    context: String,
    range: Option<(String, String)>,
    words: String,
    origin: String,
}

/// Reads the catalogue over a fresh session.
pub(super) async fn load(fresh: &mut Wire) -> Result<Catalogue> {
    let doing = "read the catalogue of parameters";
    let rows = fresh.rows(doing, COLUMNS, &[]).await?;
    let listed = rows.iter().map(|row| listed(row, doing));
    Ok(Catalogue::from_variables(
        listed.collect::<Result<Vec<_>>>()?.into_iter().map(variable),
    ))
}

/// Reads one parameter over a fresh session.
pub(super) async fn one(fresh: &mut Wire, name: &str) -> Result<Option<Variable>> {
    let doing = "read a parameter";
    let sql = format!("{COLUMNS} WHERE lower(name) = lower($1)");
    let rows = fresh.rows(doing, &sql, &[(&name, Type::TEXT)]).await?;
    rows.first()
        .map(|row| listed(row, doing).map(variable))
        .transpose()
}

fn listed(row: &Row, doing: &str) -> Result<Listed> {
    let (least, most): (Option<String>, Option<String>) = (column(row, 5, doing)?, column(row, 6, doing)?);
    Ok(Listed {
        name: column(row, 0, doing)?,
        value: column(row, 1, doing)?,
        kind: column(row, 2, doing)?,
        unit: column(row, 3, doing)?,
        context: column(row, 4, doing)?,
        range: least.zip(most),
        words: column(row, 7, doing)?,
        origin: column(row, 8, doing)?,
    })
}

fn variable(listed: Listed) -> Variable {
    let number = |text: &str| {
        text.parse::<i128>()
            .ok()
            .or_else(|| text.parse::<f64>().ok().map(|f| f as i128))
    };
    let range = listed
        .range
        .and_then(|(least, most)| number(&least).zip(number(&most)));
    Variable {
        kind: kind(&listed.kind, &listed.unit),
        name: listed.name,
        value: listed.value,
        range,
        block: 1,
        // The empty word is one of some.
        words: match listed.words.as_str() {
            "" => Vec::new(),
            words => words.split(',').map(str::to_owned).collect(),
        },
        read_only: matches!(listed.context.as_str(), "internal" | "postmaster"),
        fixed: listed.context == "internal",
        session_only: false,
        origin: listed.origin,
    }
}

fn kind(vartype: &str, unit: &str) -> Kind {
    let counted = |word: &str, unit: &str| unit.strip_suffix(word).map(|n| n.parse::<i64>().unwrap_or(1));
    let size = counted("kB", unit)
        .map(|n| n << 10)
        .or_else(|| counted("MB", unit).map(|n| n << 20))
        .or_else(|| (unit == "B").then_some(1));
    let time = match unit {
        "us" => Some(1),
        "ms" => Some(1_000),
        "s" => Some(1_000_000),
        "min" => Some(60_000_000),
        _ => None,
    };
    match (vartype, size, time) {
        ("bool", ..) => Kind::Boolean,
        ("enum", ..) => Kind::Choice,
        ("integer" | "real", Some(bytes), _) => Kind::Size(bytes),
        ("integer" | "real", _, Some(micros)) => Kind::Time(micros),
        ("integer", ..) => Kind::Integer,
        ("real", ..) => Kind::Real,
        _ => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn listed(name: &str, kind: &str, unit: &str, range: Option<(&str, &str)>) -> Variable {
        variable(Listed {
            name: name.to_owned(),
            kind: kind.to_owned(),
            unit: unit.to_owned(),
            context: "user".to_owned(),
            range: range.map(|(least, most)| (least.to_owned(), most.to_owned())),
            ..Listed::default()
        })
    }

    #[rstest]
    #[case("8kB", "256MB", "268435456")]
    #[case("8kB", "256M", "268435456")]
    #[case("8kB", "32768", "268435456")]
    #[case("8kB", "0.25 GB", "268435456")]
    // Rounded to the nearest whole unit, as the server does.
    #[case("8kB", "100kB", "98304")]
    #[case("kB", "4MB", "4194304")]
    #[case("MB", "1GB", "1073741824")]
    #[case("B", "64", "64")]
    #[case("8kB", "-1", "-1")]
    #[case("s", "5min", "300s")]
    #[case("s", "300", "300s")]
    #[case("ms", "1s", "1000ms")]
    #[case("ms", "2.5", "2.5ms")]
    #[case("min", "1d", "1440min")]
    fn values_have_one_form_whatever_their_unit(
        #[case] unit: &str,
        #[case] written: &str,
        #[case] form: &str,
    ) {
        let kind = if written.contains('.') && unit == "ms" {
            "real"
        } else {
            "integer"
        };
        let variable = listed("p", kind, unit, Some(("-1", "1073741823")));
        assert_eq!(variable.canonical(written).unwrap(), form);
    }

    #[rstest]
    #[case("8kB", "1 XB", "unit")]
    #[case("8kB", "5min", "unit")]
    #[case("s", "5MB", "unit")]
    #[case("8kB", "much", "number")]
    #[case("8kB", "9TB", "out of range")]
    fn what_cannot_be_a_value_is_said(#[case] unit: &str, #[case] written: &str, #[case] said: &str) {
        let variable = listed("p", "integer", unit, Some(("16", "1073741823")));
        let why = variable.canonical(written).unwrap_err();
        assert!(why.contains(said), "{why}");
    }

    #[test]
    fn words_of_a_choice_and_their_aliases() {
        let mut variable = listed("synchronous_commit", "enum", "", None);
        variable.words = ["local", "remote_write", "on", "off"].map(str::to_owned).to_vec();
        assert_eq!(variable.canonical("OFF").unwrap(), "off");
        assert_eq!(variable.canonical("0").unwrap(), "off");
        assert_eq!(variable.canonical("true").unwrap(), "on");
        assert!(variable.canonical("maybe").unwrap_err().contains("remote_write"));
    }

    #[test]
    fn libraries_that_an_audit_setting_adds_do_not_matter() {
        let mut variable = listed("shared_preload_libraries", "string", "", None);
        variable.value = "pg_stat_statements,pgaudit".to_owned();
        let catalogue = Catalogue::from_variables([variable.clone()]);
        assert!(catalogue.in_force(&variable, "pg_stat_statements"));
        assert!(!catalogue.in_force(&variable, "pg_stat_statements, auto_explain"));
    }
}
