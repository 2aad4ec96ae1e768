//! What happened in a simulation, in order, with virtual times: the evidence for every invariant, and the hash that
//! shows that the same seed gives the same history.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// One request or one change made by a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    /// Since the start of the simulation.
    pub(crate) at: Duration,
    pub(crate) actor: String,
    /// The word of RBAC.
    pub(crate) verb: &'static str,
    /// `plural` or `plural/subresource`.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// HTTP code; 0 if the caller got no answer.
    pub(crate) code: u16,
    /// The fault that was injected, if any.
    pub(crate) fault: Option<&'static str>,
    /// Changed something in the store.
    pub(crate) wrote: bool,
    /// Hash of the object as it was written; 0 for reads.
    pub(crate) digest: u64,
}

/// The history of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    entries: Vec<Entry>,
}

impl Record {
    /// Appends an entry.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// All entries, oldest first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Requests of an actor.
    pub(crate) fn of<'a>(&'a self, actor: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.actor == actor)
    }

    /// The same for the same history, whatever the process.
    pub(crate) fn hash(&self) -> u64 {
        hash_of(&self.entries)
    }
}

/// A hash with fixed keys.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
