//! Makes this machine ready, step by step: packages, programs, images, node. Each step is skipped when it is done already.

use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::error::Result;
use crate::images::{self, Archive};
use crate::node::Node;
use crate::packages::{self, Package};

/// The images of this checkout.
#[derive(Clone, Debug)]
pub struct Images {
    /// The operator.
    pub operator: Archive,
    /// The runner.
    pub runner: Archive,
    /// The database of the quickstart and the suite.
    pub mariadb: Archive,
}

/// Installs what the node needs and starts it, or reuses the running one.
pub fn local_node(cache: &Cache) -> Result<Node> {
    packages::ensure(cache, &packages::NODE.iter().collect::<Vec<&Package>>())?;
    let binaries = Binaries::ensure(cache)?;
    let (pause, mariadb) = (images::pause(cache)?, images::mariadb(cache)?);
    Node::up(cache, &binaries, &pause, &mariadb)
}

/// Builds operator, runner and database images.
pub fn project_images(cache: &Cache) -> Result<Images> {
    let (operator, runner) = images::release_binaries(cache)?;
    Ok(Images {
        operator: images::operator(cache, &operator)?,
        runner: images::runner(cache, &runner)?,
        mariadb: images::mariadb(cache)?,
    })
}
