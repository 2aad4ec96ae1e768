//! What distinguishes one vendor's server and version from another, as data: one file each. A new dialect is one new file
//! and one line in [`DIALECTS`].

mod common;
mod mysql_5_6;
mod mysql_5_7;
mod mysql_8_0;
mod mysql_8_4;
mod percona_5_7;
mod percona_8_0;
mod plugins;
mod taurusdb;

/// Every dialect.
pub const DIALECTS: &[&Dialect] = &[
    &mysql_5_6::DIALECT,
    &mysql_5_7::DIALECT,
    &mysql_5_7::ENTERPRISE,
    &mysql_5_7::WITH_MCAFEE,
    &mysql_8_0::DIALECT,
    &mysql_8_0::ENTERPRISE,
    &mysql_8_4::DIALECT,
    &percona_5_7::DIALECT,
    &percona_8_0::DIALECT,
    &taurusdb::DIALECT,
];

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A manual with its version, and the section.
    Manual(&'static str, &'static str),
    /// The vendor's source code: project and file.
    Code(&'static str, &'static str),
    /// Nothing that could be cited: how the server answers is assumed.
    Unverified(&'static str),
}

/// Where a variable exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exists {
    /// Globally only.
    Global,
    /// Globally and in each session, which copies it when it begins.
    Both,
    /// In each session only.
    Session,
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `ON` or `OFF`.
    Boolean,
    /// A whole number: least, most, size of a block.
    Integer(i128, i128, i128),
    /// A number with a fraction: least, most.
    Real(f64, f64),
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any of these words, with commas.
    Words(&'static [&'static str]),
}

/// A system variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// Where it exists.
    pub exists: Exists,
    /// What it holds.
    pub kind: Kind,
    /// Whether it can be set while the server runs.
    pub dynamic: bool,
    /// Value unless the configuration says otherwise.
    pub default: &'static str,
}

impl Variable {
    const fn new(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self {
            name,
            exists: Exists::Global,
            kind,
            dynamic: true,
            default,
        }
    }

    const fn boolean(name: &'static str, default: &'static str) -> Self {
        Self::new(name, Kind::Boolean, default)
    }

    const fn integer(name: &'static str, default: &'static str, least: i128, most: i128) -> Self {
        Self::new(name, Kind::Integer(least, most, 1), default)
    }

    const fn text(name: &'static str, default: &'static str) -> Self {
        Self::new(name, Kind::Text, default)
    }

    const fn word(name: &'static str, default: &'static str, words: &'static [&'static str]) -> Self {
        Self::new(name, Kind::Word(words), default)
    }

    const fn read_only(mut self) -> Self {
        self.dynamic = false;
        self
    }

    const fn both(mut self) -> Self {
        self.exists = Exists::Both;
        self
    }

    const fn session(mut self) -> Self {
        self.exists = Exists::Session;
        self
    }
}

/// What stands in the way of unloading a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unloading {
    /// Nothing.
    Free,
    /// A read-only variable that must be `ON`; even then the first of two statements only stops the plugin.
    TwiceIf(&'static str),
}

/// A library in the plugin directory, and the plugin in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plugin {
    /// Name of the plugin.
    pub name: &'static str,
    /// File.
    pub library: &'static str,
    /// Its variables.
    pub variables: &'static [Variable],
    /// Its status variables, with what they are after a start.
    pub status: &'static [(&'static str, &'static str)],
    /// What stands in the way of unloading it.
    pub unloading: Unloading,
    /// Where this comes from.
    pub sources: &'static [Source],
}

/// A component that can be loaded by its URN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// URN.
    pub urn: &'static str,
    /// Its variables.
    pub variables: &'static [Variable],
    /// Its status variables, with what they are after a start.
    pub status: &'static [(&'static str, &'static str)],
    /// Where this comes from.
    pub sources: &'static [Source],
}

/// How a login is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// `mysql_native_password`.
    Native,
    /// `caching_sha2_password`.
    CachingSha2,
}

/// One server of one vendor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dialect {
    /// Name by which it is asked for.
    pub name: &'static str,
    /// `@@version`.
    pub version: &'static str,
    /// Version as three numbers, as the client reads them.
    pub numbers: (u16, u16, u16),
    /// `@@version_comment`.
    pub comment: &'static str,
    /// How logins are proved unless an account says otherwise.
    pub authentication: Authentication,
    /// Its variables besides those of its version.
    pub variables: &'static [&'static [Variable]],
    /// Status variables, with what they are after a start.
    pub status: &'static [(&'static str, &'static str)],
    /// What is in its plugin directory.
    pub plugins: &'static [Plugin],
    /// What can be loaded as a component.
    pub components: &'static [Component],
    /// Privileges of which one lets a session set global variables, as an error names them.
    pub to_set: &'static str,
    /// Where all this comes from.
    pub sources: &'static [Source],
}

impl Dialect {
    /// Whether it knows `SET PERSIST`, components and roles.
    pub fn is_8(&self) -> bool {
        self.numbers >= (8, 0, 0)
    }
}

/// The dialect of this name; else the names that there are.
pub fn find(name: &str) -> Result<&'static Dialect, String> {
    DIALECTS
        .iter()
        .copied()
        .find(|dialect| dialect.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = DIALECTS.iter().map(|d| d.name).collect();
            format!("there is no dialect {name}: use one of {}", known.join(", "))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_everything_says_where_it_comes_from() {
        for (at, dialect) in DIALECTS.iter().enumerate() {
            assert!(DIALECTS[..at].iter().all(|other| other.name != dialect.name));
            assert!(!dialect.sources.is_empty(), "{}", dialect.name);
            for plugin in dialect.plugins {
                assert!(!plugin.sources.is_empty(), "{}", plugin.name);
            }
            let numbers = format!(
                "{}.{}.{}",
                dialect.numbers.0, dialect.numbers.1, dialect.numbers.2
            );
            assert!(dialect.version.starts_with(&numbers), "{}", dialect.name);
            assert_eq!(find(dialect.name), Ok(*dialect));
        }
        assert!(find("oracle").unwrap_err().contains("percona-8.0"));
    }

    #[test]
    fn what_is_assumed_is_listed_in_the_documentation() {
        let page = include_str!("../../docs/verified.md");
        let assumed = |source: &Source| match source {
            Source::Unverified(what) => Some(*what),
            Source::Manual(..) | Source::Code(..) => None,
        };
        for dialect in DIALECTS {
            let plugins = dialect.plugins.iter().flat_map(|p| p.sources);
            let components = dialect.components.iter().flat_map(|c| c.sources);
            for what in dialect
                .sources
                .iter()
                .chain(plugins)
                .chain(components)
                .filter_map(assumed)
            {
                assert!(
                    page.contains(what),
                    "{}: `{what}` is not in docs/verified.md",
                    dialect.name
                );
            }
        }
    }
}
