//! Several changes in one transaction.

use super::failure::Failure;
use super::memory::Memory;
use super::{Database, Durability};
use crate::sql::Connection;
use crate::{Engine, StoreError, StoreErrorKind};

/// Changes that are one transaction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Group {
    /// Each change is a transaction of its own.
    #[default]
    None,
    /// The group has no change yet, and so no transaction.
    Empty,
    /// The changes are in a transaction.
    Begun,
    /// A change has failed: nothing of the group may be stored.
    Failed,
}

impl Engine for Database {
    fn begin_group(&mut self) -> Result<(), StoreError> {
        self.heal()?;
        let synced = self.set_durability(Durability::Synced);
        synced.map_err(|failure| failure.at(&self.name))?;
        self.group = Group::Empty;
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), StoreError> {
        match self.group {
            Group::None => Ok(()),
            Group::Empty => {
                self.group = Group::None;
                Ok(())
            }
            Group::Failed => Err(StoreError::new(&self.name, StoreErrorKind::Broken)),
            Group::Begun => match self.commit() {
                Ok(()) => {
                    self.group = Group::None;
                    Ok(())
                }
                Err(failure) => {
                    self.group = Group::Failed;
                    Err(failure.at(&self.name))
                }
            },
        }
    }

    fn abandon_group(&mut self) {
        if matches!(
            std::mem::take(&mut self.group),
            Group::Begun | Group::Failed
        ) {
            self.undo();
        }
    }
}

impl Database {
    /// A change that belongs to the group.
    pub(super) fn change_in_group<T>(
        &mut self,
        change: impl FnOnce(&Connection, &mut Memory) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.group == Group::Failed {
            return Err(Failure::Abandoned);
        }
        let is_begun = std::mem::replace(&mut self.group, Group::Failed) == Group::Begun;
        if !is_begun {
            self.begin()?;
        }
        let value = change(&self.db, &mut self.memory)?;
        self.group = Group::Begun;
        Ok(value)
    }

    /// Before a change. If an earlier one could not be taken back, tries again; without a file that is not possible.
    pub(super) fn heal(&mut self) -> Result<(), StoreError> {
        if self.is_read_only {
            return Err(StoreError::new(&self.name, StoreErrorKind::ReadOnly));
        }
        let reconnected = self.db.reconnect().map_err(Failure::from);
        self.is_broken |= self.read(reconnected)?;
        if self.is_broken && !self.name.as_os_str().is_empty() {
            self.is_broken = false;
            self.undo();
        }
        if self.is_broken {
            return Err(StoreError::new(&self.name, StoreErrorKind::Broken));
        }
        Ok(())
    }
}
