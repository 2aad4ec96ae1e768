//! The machinery behind `cargo demo` and `cargo verify`: packages, programs, images, the local node, the stages of a check.
//! Needs few crates so that the commands start quickly; nothing here is part of the product.

pub mod answer_table;
pub mod binaries;
pub mod cache;
pub mod cluster;
pub mod command;
pub mod error;
pub mod images;
pub mod install;
pub mod live;
pub mod machine;
pub mod node;
pub mod packages;
pub mod progress;
pub mod speed;
pub mod verify;
pub mod view;

/// The arguments of this program. The aliases end with `--`, so that options can follow at once; of a second one, as cargo
/// itself wants it (`cargo demo -- --down`), the program would think that no option follows.
pub fn arguments() -> impl Iterator<Item = std::ffi::OsString> {
    without_separator(std::env::args_os())
}

fn without_separator(
    arguments: impl Iterator<Item = std::ffi::OsString>,
) -> impl Iterator<Item = std::ffi::OsString> {
    arguments
        .enumerate()
        .filter(|(place, argument)| *place != 1 || argument != "--")
        .map(|(_, argument)| argument)
}

#[cfg(test)]
mod tests {
    use super::without_separator;

    #[test]
    fn options_may_follow_the_alias_with_and_without_a_separator() {
        for given in [vec!["demo", "--", "--down"], vec!["demo", "--down"]] {
            let found: Vec<_> = without_separator(given.into_iter().map(Into::into)).collect();
            assert_eq!(found, ["demo", "--down"]);
        }
    }
}
