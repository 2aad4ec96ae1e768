use rstest::rstest;

use super::*;
use crate::catalogue::Kind;

const CONF: &str = "/etc/postgresql/postgresql.conf";
const AUTO: &str = "/var/lib/postgresql/data/postgresql.auto.conf";

fn line(file: &str, name: &str, text: &str) -> Line {
    Line {
        file: file.to_owned(),
        number: 7,
        name: name.to_owned(),
        text: text.to_owned(),
        error: None,
    }
}

fn variable(name: &str, kind: Kind, value: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value.to_owned(),
        kind,
        range: None,
        block: 1,
        words: Vec::new(),
        read_only: false,
        fixed: false,
        session_only: false,
        origin: String::new(),
    }
}

fn seen(lines: Vec<Line>, variable: Variable, source: &str) -> Look {
    let origin = Origin {
        source: source.to_owned(),
        pending_restart: false,
    };
    Look {
        lines,
        origins: [(variable.name.clone(), origin)].into(),
        catalogue: Catalogue::from_variables([variable]),
    }
}

#[rstest]
// As it should be: the last line counts, in whatever words.
#[case(vec![line(CONF, "work_mem", "1MB"), line(AUTO, "work_mem", "64MB")], "65536", "configuration file", true)]
#[case(vec![line(CONF, "work_mem", "65536")], "65536", "configuration file", true)]
#[case(vec![], "4096", "default", true)]
// A value of the login's own says nothing of the files.
#[case(vec![line(CONF, "work_mem", "1MB")], "4096", "user", true)]
// Somebody edited the file, or took the line out, and did not reload.
#[case(vec![line(CONF, "work_mem", "1MB")], "4096", "default", false)]
#[case(vec![line(CONF, "work_mem", "1MB")], "65536", "configuration file", false)]
#[case(vec![], "65536", "configuration file", false)]
fn a_file_that_was_edited_and_not_loaded_is_found(
    #[case] lines: Vec<Line>,
    #[case] value: &str,
    #[case] source: &str,
    #[case] loaded: bool,
) {
    let look = seen(lines, variable("work_mem", Kind::Size(1024), value), source);
    assert_eq!(
        not_loaded(&look, |_| true).is_empty(),
        loaded,
        "{:?}",
        unready(&look, false)
    );
    assert_eq!(unready(&look, false).is_empty(), loaded);
    assert!(not_loaded(&look, |name| name != "work_mem").is_empty());
}

#[rstest]
#[case(Kind::Text, "iso, mdy", "ISO, MDY", true)]
#[case(Kind::Integer, "0640", "416", true)]
#[case(Kind::Integer, "0", "0", true)]
#[case(Kind::Boolean, "true", "on", true)]
#[case(Kind::Time(1_000_000), "5min", "300", true)]
#[case(Kind::Text, "german", "english", false)]
fn a_text_means_a_value(#[case] kind: Kind, #[case] text: &str, #[case] value: &str, #[case] same: bool) {
    assert_eq!(means(&variable("p", kind, value), text), same);
}

#[test]
fn errors_and_pending_restarts_are_in_the_way() {
    let mut broken = line(CONF, "work_mem", "much");
    broken.error = Some(WAITS.to_owned());
    let look = seen(
        vec![broken],
        variable("work_mem", Kind::Size(1024), "4096"),
        "default",
    );
    assert!(
        unready(&look, false)[0].contains("postgresql.conf line 7: setting could not be applied: correct")
    );

    let mut waits = line(CONF, "max_connections", "500");
    waits.error = Some(WAITS.to_owned());
    let most = Variable {
        read_only: true,
        ..variable("max_connections", Kind::Integer, "100")
    };
    let mut look = seen(vec![waits], most, "configuration file");
    for origin in look.origins.values_mut() {
        origin.pending_restart = true;
    }
    assert_eq!(unready(&look, false), [""; 0], "nothing of ours restarts it");
    assert!(unready(&look, true)[0].contains("max_connections waits for a restart"));
}

#[test]
fn only_what_differs_is_put_back_as_the_text_that_was_there() {
    let lines = [
        line(CONF, "work_mem", "1MB"),
        line(AUTO, "work_mem", "64MB"),
        line(AUTO, "log_statement", "all"),
        line(AUTO, "jit", "off"),
    ];
    let original: BTreeMap<String, Option<String>> = [
        ("work_mem", Some("32MB")),
        ("log_statement", None),
        ("jit", Some("off")),
        ("search_path", Some("\"$user\", public")),
        ("temp_buffers", None),
    ]
    .map(|(name, text)| (name.to_owned(), text.map(str::to_owned)))
    .into();
    let put_back = statements(&written(&lines), &original);
    let all: Vec<&str> = put_back.values().map(String::as_str).collect();
    assert_eq!(
        all,
        [
            "ALTER SYSTEM RESET \"log_statement\"",
            "ALTER SYSTEM SET \"search_path\" = '$user', 'public'",
            "ALTER SYSTEM SET \"work_mem\" = '32MB'",
        ]
    );
}
