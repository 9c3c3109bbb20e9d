//! The fleet of a store. A file has one worker, which needs no rows.

use std::collections::HashSet;

use jiff::Timestamp;

use super::Database;
use super::group::Group;
use crate::postgres::fleet::{self, Member};
use crate::sql::Connection;
use crate::tables::failure::Failure;
use crate::{
    Completion, FleetStore, HostId, Late, NewWorker, Store as _, StoreError, Tenure,
    WatchStore as _, WorkerInfo,
};

impl Database {
    /// Does something for the worker, with a sign of life: in the transaction of the group, or in one of its own that waits
    /// for no other writer. Without a fleet nothing is done.
    pub(super) fn as_member<T>(
        &mut self,
        run: impl FnOnce(&Connection, &mut Member) -> Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        let Some(mut member) = self.memory.member.take() else {
            return Ok(None);
        };
        let done = self.run_as(&mut member, run);
        self.memory.member = Some(member);
        self.read(done.map(Some))
    }

    fn run_as<T>(
        &mut self,
        member: &mut Member,
        run: impl FnOnce(&Connection, &mut Member) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.group {
            // The transaction began with a sign of life.
            Group::Begun => return run(&self.db, member),
            Group::Failed => return Err(Failure::Abandoned),
            Group::None | Group::Empty => {}
        }
        self.db.reconnect()?;
        self.db.begin_quick()?;
        let done = member.beat(&self.db).and_then(|()| run(&self.db, member));
        let done = done.and_then(|value| Ok(self.db.commit().map(|()| value)?));
        match &done {
            Ok(_) => member.commit(),
            Err(_) => {
                member.undo();
                // A connection that fails here fails at the next statement, too, and that one tells.
                let _ = self.db.rollback();
            }
        }
        done
    }
}

impl FleetStore for Database {
    fn join_fleet(&mut self, worker: &NewWorker) -> Result<Tenure, StoreError> {
        if !self.db.is_shared() {
            return Ok(Tenure::endless());
        }
        self.memory.member = Some(Member::new(worker));
        let tenure = self.as_member(|_, member| Ok(member.tenure().clone()))?;
        Ok(tenure.unwrap_or_else(Tenure::endless))
    }

    fn beat(&mut self) -> Result<(), StoreError> {
        self.as_member(|_, _| Ok(())).map(drop)
    }

    fn release(&mut self, in_use: &HashSet<HostId>) -> Result<u64, StoreError> {
        let released = self.as_member(|db, member| member.release(db, in_use));
        Ok(released?.unwrap_or(0))
    }

    fn rest(&mut self, hosts: &[(HostId, Timestamp)]) -> Result<(), StoreError> {
        if hosts.is_empty() {
            return Ok(());
        }
        let rested = self.as_member(|db, _| fleet::rest(db, hosts));
        rested.map(drop)
    }

    fn judge_late(&mut self, late: &Late) -> Result<Completion, StoreError> {
        let judged = late.judgements.iter().map(|judgement| judgement.id.host);
        let hosts = judged.chain(late.facts.iter().map(|(host, _)| *host));
        let hosts: HashSet<HostId> = hosts.collect();
        let adopted = self.as_member(|db, member| member.adopt(db, &hosts, late.worker))?;
        let done = self.judge(&late.judgements)?;
        if !late.facts.is_empty() {
            self.save_hosts(&late.facts)?;
        }
        self.as_member(|db, member| member.disown(db, &adopted.unwrap_or_default()))?;
        Ok(done)
    }

    fn leave_fleet(&mut self) -> Result<(), StoreError> {
        self.as_member(|db, member| member.leave(db))?;
        self.memory.member = None;
        Ok(())
    }

    fn take_task(&mut self, name: &str) -> Result<bool, StoreError> {
        let taken = self.as_member(|db, member| member.take_task(db, name));
        Ok(taken?.unwrap_or(true))
    }

    fn workers(&mut self) -> Result<Vec<WorkerInfo>, StoreError> {
        match self.db.is_shared() {
            true => self.read(fleet::workers(&self.db)),
            false => Ok(Vec::new()),
        }
    }
}
