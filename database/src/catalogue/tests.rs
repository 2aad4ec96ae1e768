use super::*;
use proptest::prelude::*;

fn variable(name: &str, kind: Kind, range: Option<(i128, i128)>, words: &[&str]) -> Variable {
    Variable {
        name: name.to_owned(),
        value: String::new(),
        kind,
        range,
        block: 1,
        words: words.iter().map(|w| (*w).to_owned()).collect(),
        read_only: false,
        fixed: false,
        session_only: false,
        origin: "COMPILE-TIME".to_owned(),
    }
}

fn catalogue() -> Catalogue {
    let mut pool = variable(
        "innodb_buffer_pool_size",
        Kind::Integer,
        Some((2 << 20, i128::from(u64::MAX))),
        &[],
    );
    pool.block = 1 << 20;
    pool.value = "134217728".to_owned();
    let mut session = variable("timestamp", Kind::Real, None, &[]);
    session.session_only = true;
    let mut chunk = variable(
        "innodb_buffer_pool_chunk_size",
        Kind::Integer,
        Some((0, i128::from(u64::MAX))),
        &[],
    );
    chunk.value = "134217728".to_owned();
    Catalogue::from_variables([
        pool,
        session,
        chunk,
        variable(
            "max_prepared_stmt_count",
            Kind::Integer,
            Some((0, 4_294_967_295)),
            &[],
        ),
        variable(
            "innodb_flush_method",
            Kind::Word,
            None,
            &["fsync", "O_DSYNC", "O_DIRECT"],
        ),
        variable(
            "sql_mode",
            Kind::Set,
            None,
            &["ANSI_QUOTES", "ANSI", "STRICT_TRANS_TABLES"],
        ),
        variable("optimizer_switch", Kind::Switches, None, &[]),
        variable("general_log", Kind::Boolean, None, &["OFF", "ON"]),
        variable("long_query_time", Kind::Real, Some((0, 31_536_000)), &[]),
    ])
}

#[test]
fn unknown_names_get_the_nearest_known_one() {
    let catalogue = catalogue();
    for (wrong, right) in [
        ("max_prepared_stmt_cuont", "max_prepared_stmt_count"),
        ("innodb-flush-methd", "innodb_flush_method"),
        ("buffer_pool_size", "innodb_buffer_pool_size"),
    ] {
        let problem = catalogue.problem(wrong, &1.into()).unwrap();
        assert_eq!(
            problem.message,
            format!("this server has no parameter {wrong}: did you mean {right}?")
        );
    }
    let far = catalogue.problem("shared_buffers", &1.into()).unwrap();
    assert_eq!(far.message, "this server has no parameter shared_buffers");
    assert!(catalogue.problem("MAX-prepared-stmt-count", &1.into()).is_none());
}

#[test]
fn values_of_the_wrong_kind_or_out_of_range_are_told_with_what_is_allowed() {
    let catalogue = catalogue();
    for (name, value, part) in [
        ("max_prepared_stmt_count", "4294967296", "0 to 4294967295"),
        ("max_prepared_stmt_count", "-1", "out of range"),
        ("max_prepared_stmt_count", "many", "not a whole number"),
        ("max_prepared_stmt_count", "1.5", "not a whole number"),
        ("innodb_buffer_pool_size", "1M", "2097152 to"),
        ("innodb_flush_method", "O_DRIECT", "fsync, O_DSYNC, O_DIRECT"),
        ("sql_mode", "STRICT", "ANSI_QUOTES"),
        ("optimizer_switch", "mrr=maybe", "on or off"),
        ("general_log", "2", "neither ON nor OFF"),
        ("long_query_time", "fast", "not a number"),
        ("long_query_time", "1e9", "out of range"),
        ("timestamp", "1", "session"),
    ] {
        let problem = catalogue
            .problem(name, &value.into())
            .unwrap_or_else(|| panic!("{name}={value}"));
        assert!(problem.message.contains(part), "{}", problem.message);
    }
}

#[test]
fn a_share_of_the_instance_is_no_value_of_a_server() {
    let found = catalogue().problem("innodb_buffer_pool_size", &"75% of memory".into());
    assert!(found.unwrap().message.contains("write the number"));
}

#[test]
fn equal_values_have_one_canonical_form() {
    let catalogue = catalogue();
    for (name, forms, canonical) in [
        (
            "innodb_buffer_pool_size",
            ["256M", "268435456", "262144K"],
            "268435456",
        ),
        // Rounded down to whole blocks, as the server does.
        (
            "innodb_buffer_pool_size",
            ["268435457", "269484031", "268435456"],
            "268435456",
        ),
        ("innodb_flush_method", ["o_direct", "O_DIRECT", "2"], "O_DIRECT"),
        (
            "sql_mode",
            [
                "STRICT_TRANS_TABLES,ANSI_QUOTES",
                "ansi_quotes, strict_trans_tables",
                "5",
            ],
            "ANSI_QUOTES,STRICT_TRANS_TABLES",
        ),
        ("general_log", ["ON", "1", "true"], "ON"),
        ("long_query_time", ["0", "0.0", "0.000000"], "0"),
        ("long_query_time", ["1.5", "1.500000", "15e-1"], "1.5"),
        (
            "optimizer_switch",
            [
                "mrr=ON,index_merge=off",
                "index_merge=off,mrr=on",
                "index_merge=0,mrr=1",
            ],
            "index_merge=off,mrr=on",
        ),
    ] {
        let variable = catalogue.get(name).unwrap();
        for form in forms {
            assert_eq!(
                variable.canonical(form).as_deref(),
                Ok(canonical),
                "{name}={form}"
            );
        }
    }
    assert_eq!(
        catalogue.get("sql_mode").unwrap().canonical("").as_deref(),
        Ok("")
    );
}

#[test]
fn a_pool_that_an_older_server_rounds_up_to_a_chunk_is_in_force() {
    let catalogue = catalogue();
    let pool = catalogue.get("innodb_buffer_pool_size").unwrap();
    assert!(catalogue.in_force(pool, "128M") && catalogue.in_force(pool, "100M"));
    assert!(!catalogue.in_force(pool, "129M"));
}

#[test]
fn switches_compare_only_those_named() {
    let mut switches = variable("optimizer_switch", Kind::Switches, None, &[]);
    switches.value = "mrr=off,index_merge=on,mrr_cost_based=off".to_owned();
    let catalogue = Catalogue::default();
    assert!(catalogue.in_force(&switches, "mrr=off"));
    assert!(!catalogue.in_force(&switches, "mrr=on"));
    assert!(!catalogue.in_force(&switches, "unknown=on"));
}

#[test]
fn words_that_stand_for_several_modes_are_refused() {
    let problems = check(
        &catalogue(),
        &Parameters::from([("sql_mode".to_owned(), "ANSI".into())]),
    );
    assert!(problems[0].message.contains("several modes"), "{problems:?}");
}

#[test]
fn what_cannot_matter_is_inert() {
    assert!(inert("sync-binlog", false, false));
    assert!(!inert("sync_binlog", true, false));
    assert!(inert("innodb_flush_log_at_trx_commit", true, true));
    assert!(!inert("innodb_flush_log_at_trx_commit", false, false));
    assert!(!inert("max_prepared_stmt_count", false, true));
}

proptest! {
    #[test]
    fn canonical_forms_are_fixed_points(number in -10i64..5_000_000_000, text in "[a-zA-Z0-9_,=. -]{0,24}") {
        for variable in catalogue().variables.values() {
            for value in [number.to_string(), text.clone()] {
                if let Ok(once) = variable.canonical(&value) {
                    prop_assert_eq!(variable.canonical(&once), Ok(once.clone()), "{} = {}", variable.name, value);
                }
            }
        }
    }

    #[test]
    fn distance_is_a_metric_on_short_names(a in "[ab_]{0,6}", b in "[ab_]{0,6}") {
        prop_assert_eq!(edit_distance(&a, &b), edit_distance(&b, &a));
        prop_assert_eq!(edit_distance(&a, &b) == 0, a == b);
        prop_assert!(edit_distance(&a, &b) <= a.len().max(b.len()));
    }
}
