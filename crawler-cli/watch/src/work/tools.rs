//! What jobs and readings have at hand: the store, the network, and how searches are read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::http::Http;
use crate::core::Settings;
use find::Find;
use store::{Engine, Notice, StoreError, StoreHandle as _, Writer};

/// Reads the arguments of a `find` job, as the command line does, onto a search that has the network settings.
pub type FindReader = fn(Find, &[String]) -> Result<Find, String>;

/// What jobs and readings of sets have at hand.
pub struct Tools {
    store: Writer,
    http: Http,
    find: FindReader,
    pub(crate) most_lost: f64,
    /// One lock for each set: only one thread reads its source.
    locks: Arc<Mutex<HashMap<String, Arc<Mutex<()>>>>>,
}

impl Tools {
    /// Tools that use this store and this network. The arguments of `find` jobs are those of its expression alone, unless
    /// another reader is set.
    pub fn new(store: Writer, http: Http) -> Self {
        Self {
            store,
            http,
            find: super::find::expression,
            most_lost: MOST_LOST,
            locks: Arc::default(),
        }
    }

    /// Reads the arguments of `find` jobs with this function.
    pub fn find_reader(mut self, find: FindReader) -> Self {
        self.find = find;
        self
    }

    /// The share of its members that a set may lose in one reading. `None`: no limit. Default 0.5.
    pub fn most_lost(mut self, share: Option<f64>) -> Self {
        self.most_lost = share.unwrap_or(1.0);
        self
    }

    /// The same tools with changed settings.
    pub fn reloaded(&self, settings: &Settings) -> Self {
        Self {
            store: self.store.clone(),
            http: self.http.reloaded(settings),
            find: self.find,
            most_lost: self.most_lost,
            locks: Arc::clone(&self.locks),
        }
    }

    pub(crate) fn store(&self) -> &Writer {
        &self.store
    }

    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    pub(super) fn read_find(&self, find: Find, args: &[String]) -> Result<Find, String> {
        super::find::read(self.find, find, args)
    }

    /// Times in the store are of the wall clock.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Changes the store, and waits until the change is on the disk.
    pub(crate) fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send + 'static,
    {
        self.store.call(run)
    }

    /// What the last complete reading of a set left.
    pub(crate) fn mark_of(&self, set: &str) -> Result<Option<String>, StoreError> {
        let name = set.to_owned();
        self.store.read(move |store| {
            let sets = store.sets()?.into_iter();
            Ok(sets.filter(|set| set.name == name).find_map(|set| set.mark))
        })
    }

    pub(crate) fn lock_of(&self, set: &str) -> Arc<Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(set.to_owned()).or_default())
    }

    /// Tells an operator.
    pub(crate) fn note(&self, kind: &str, text: &str) {
        tracing::warn!("{text}");
        let notice = Notice {
            at: self.now(),
            kind: kind.to_owned(),
            host: None,
            who: None,
            text: text.to_owned(),
        };
        if let Err(error) = self.call(move |store| store.note(&notice)) {
            tracing::error!("a notice was not stored: {error}");
        }
    }
}

/// The share of its members that a set may lose in one reading.
const MOST_LOST: f64 = 0.5;
