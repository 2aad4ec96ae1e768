//! What a share of the instance comes to: a number in the parameter's own unit, by engine and instance size.
//!
//! Rounding, always down: memory to whole MiB, below one MiB to the engine's smallest piece; the cache's own parameter to
//! whole pieces of the cache, or the server would round it itself and warn. CPUs to whole ones, at least 1.

use std::borrow::Cow;

use crds::campaign::{Database, InstanceSize};
use crds::parameter::{ParameterValue, Parameters};
use crds::quantity;
use crds::relative::Resource;
use crds::target::Engine;

use crate::budget::engines;

const MEBIBYTE: i64 = 1 << 20;

/// The value of a parameter on an instance, or why there is none. An ordinary value stays as it is.
pub(crate) fn on_instance<'v>(
    name: &str,
    value: &'v ParameterValue,
    database: &Database,
    size: &InstanceSize,
) -> Result<Cow<'v, ParameterValue>, String> {
    let Some(share) = value.relative() else {
        return Ok(Cow::Borrowed(value));
    };
    let share = share.map_err(|error| error.to_string())?;
    let amount = |amount: Option<i64>, field: &str, text: &str| {
        amount.filter(|amount| *amount > 0).ok_or_else(|| {
            format!(
                "instance size {} says no {field} that `{value}` could be a share of: {text:?}",
                size.name
            )
        })
    };
    let resolved = match share.of {
        Resource::Cpu => share
            .cpus(amount(quantity::millis(&size.cpu), "cpu", &size.cpu.0)?)
            .into(),
        Resource::Memory => {
            let memory = amount(quantity::whole(&size.memory), "memory", &size.memory.0)?;
            let bytes = rounded(share.part_of(memory), name, database.engine);
            if bytes == 0 {
                return Err(format!(
                    "`{value}` comes to nothing on instance size {} with {} of memory",
                    size.name, size.memory.0
                ));
            }
            engines::of(database.engine).size_value(bytes)
        }
    };
    Ok(Cow::Owned(resolved))
}

/// Parameters with every share as the number that it comes to on an instance. What cannot be said stays as it is: the
/// plan is refused for it.
pub(crate) fn all_on_instance(
    parameters: &Parameters,
    database: &Database,
    size: &InstanceSize,
) -> Parameters {
    let resolved = |name: &String, value: &ParameterValue| {
        on_instance(name, value, database, size).map_or_else(|_| value.clone(), Cow::into_owned)
    };
    parameters
        .iter()
        .map(|(name, value)| (name.clone(), resolved(name, value)))
        .collect()
}

fn rounded(bytes: i64, name: &str, engine: Engine) -> i64 {
    let sizes = engines::of(engine);
    let cache = (name == sizes.pool).then_some(sizes.piece);
    [cache, Some(MEBIBYTE), Some(sizes.smallest_size())]
        .into_iter()
        .flatten()
        .map(|piece| bytes / piece * piece)
        .find(|rounded| *rounded > 0)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use proptest::prelude::*;

    use super::*;

    fn resolved(engine: Engine, cpu: &str, memory: &str, name: &str, value: &str) -> Result<String, String> {
        let database = Database {
            engine,
            ..Database::default()
        };
        let size = InstanceSize {
            name: "size".into(),
            cpu: Quantity(cpu.into()),
            memory: Quantity(memory.into()),
            ..InstanceSize::default()
        };
        on_instance(name, &value.into(), &database, &size).map(|value| value.to_string())
    }

    #[test]
    fn a_share_is_a_number_in_the_unit_of_its_parameter() {
        const MARIADB: Engine = Engine::MariaDB;
        const MYSQL: Engine = Engine::MySQL;
        const POSTGRESQL: Engine = Engine::PostgreSQL;
        for (engine, memory, name, value, expected) in [
            (
                MARIADB,
                "8Gi",
                "innodb_buffer_pool_size",
                "75% of memory",
                6_442_450_944_i64.to_string(),
            ),
            // Whole pieces of the cache: 8 and 128 MiB.
            (
                MARIADB,
                "1000Mi",
                "innodb_buffer_pool_size",
                "75% of memory",
                (744 << 20).to_string(),
            ),
            (
                MYSQL,
                "1000Mi",
                "innodb_buffer_pool_size",
                "75% of memory",
                (640 << 20).to_string(),
            ),
            // Less than a piece: the server makes its pieces smaller.
            (
                MYSQL,
                "128Mi",
                "innodb_buffer_pool_size",
                "75% of memory",
                (96 << 20).to_string(),
            ),
            (
                MARIADB,
                "1000Mi",
                "key_buffer_size",
                "75% of memory",
                (750 << 20).to_string(),
            ),
            (
                MARIADB,
                "64Mi",
                "sort_buffer_size",
                "0.5% of memory",
                (327 << 10).to_string(),
            ),
            (
                POSTGRESQL,
                "8Gi",
                "shared_buffers",
                "25% of memory",
                "2048MB".to_owned(),
            ),
            (
                POSTGRESQL,
                "1001Mi",
                "work_mem",
                "1% of memory",
                "10MB".to_owned(),
            ),
            (POSTGRESQL, "64Mi", "work_mem", "1% of memory", "648kB".to_owned()),
            (
                POSTGRESQL,
                "8G",
                "effective_cache_size",
                "75% of memory",
                "5722MB".to_owned(),
            ),
            (
                MARIADB,
                "8Gi",
                "innodb_read_io_threads",
                "50% of cpu",
                "2".to_owned(),
            ),
            (
                POSTGRESQL,
                "8Gi",
                "max_parallel_workers",
                "200% of cpu",
                "8".to_owned(),
            ),
            (MARIADB, "8Gi", "innodb_io_capacity", "10% of cpu", "1".to_owned()),
            (MARIADB, "8Gi", "innodb_io_capacity", "2000", "2000".to_owned()),
            (
                MARIADB,
                "8Gi",
                "innodb_flush_method",
                "O_DIRECT",
                "O_DIRECT".to_owned(),
            ),
        ] {
            assert_eq!(
                resolved(engine, "4", memory, name, value),
                Ok(expected),
                "{name}: {value} of {memory}"
            );
        }
        assert_eq!(
            resolved(MARIADB, "500m", "8Gi", "thread_pool_size", "50% of cpu"),
            Ok("1".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_said_says_why() {
        let of = |cpu: &str, memory: &str, value: &str| {
            resolved(Engine::PostgreSQL, cpu, memory, "work_mem", value).unwrap_err()
        };
        assert!(of("4", "1Mi", "0.001% of memory").contains("comes to nothing on instance size size"));
        assert!(of("4", "lots", "10% of memory").contains("says no memory"));
        assert!(of("0", "8Gi", "10% of cpu").contains("says no cpu"));
        assert!(of("4", "8Gi", "10% of disk").contains("what it is a share of"));
    }

    proptest! {
        #[test]
        fn a_share_of_memory_is_never_more_than_asked_and_grows_with_the_instance(
            percent in 1_i64..=100, small in 64_i64..1 << 20, more in 0_i64..1 << 20,
        ) {
            for engine in [Engine::MariaDB, Engine::MySQL, Engine::PostgreSQL] {
                for name in ["innodb_buffer_pool_size", "shared_buffers", "another_size"] {
                    let bytes = |mebibytes: i64| {
                        let text = resolved(engine, "4", &format!("{mebibytes}Mi"), name, &format!("{percent}% of memory")).unwrap();
                        ParameterValue::from(text.as_str()).as_integer().unwrap()
                    };
                    let (before, after) = (bytes(small), bytes(small + more));
                    prop_assert!(before > 0 && before <= (small << 20) * percent / 100);
                    prop_assert!(before <= after);
                }
            }
        }
    }
}
