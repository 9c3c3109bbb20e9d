//! Lists of checksums among the requests of a host's downloads: a list is read once for the files that wait for it.

use super::receive::is_own_coding;
use super::{Body, Downloads, FetchId, Head, Name, Politeness, Purpose, Step, Store, Task, Wanted};
use crate::find::cause::Cause;
use crate::find::fault::Fault;
use crate::find::visitor::Visitor;

impl Downloads {
    /// Lets a file wait for a list, which is requested unless it was already.
    pub(super) fn park(&mut self, task: Task, list: String, store: &Store) {
        let waiting = self.parked.entry(list).or_insert_with_key(|list| {
            let name = Name::of(list, store.base.as_ref());
            let wanted = Wanted {
                url: list.clone(),
                size: None,
                modified: None,
            };
            let task = Task::new(wanted, Purpose::List, name, Step::FetchWhole);
            self.queue.push_next(task);
            Vec::new()
        });
        waiting.push(task);
    }

    /// The head of a list arrived. Returns whether its body is wanted.
    pub(super) fn begin_list(
        &mut self,
        task: &Task,
        head: &Head<'_>,
        visitor: &mut dyn Visitor,
    ) -> bool {
        match head.coding {
            Some(coding) if !is_own_coding(coding, task.name.file()) => {
                let cause = Cause::Encoded(coding.escape_ascii().to_string());
                self.list_failed(&task.wanted.url, &cause, visitor);
                false
            }
            _ => true,
        }
    }

    /// A part of a list arrived.
    pub(super) fn list_data(
        &mut self,
        id: FetchId,
        bytes: &[u8],
        politeness: &mut Politeness,
        store: &mut Store,
    ) -> Body {
        let Some(flight) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        if flight.text.len() + bytes.len() <= MOST_LIST_BYTES {
            flight.text.extend_from_slice(bytes);
            return Body::Wanted;
        }
        if let Some(flight) = self.in_flight.remove(&id) {
            politeness.handle_over();
            self.list_read(&flight.task.wanted.url, None, store);
        }
        Body::Unwanted
    }

    /// A list was read completely, or cannot be used.
    pub(super) fn list_read(&mut self, list: &str, text: Option<&[u8]>, store: &mut Store) {
        store.checks.take(list.to_owned(), text);
        for task in self.parked.remove(list).into_iter().flatten() {
            self.queue.push_next(task);
        }
    }

    /// A list could not be read: its files cannot be checked, and are given up.
    pub(super) fn list_failed(&mut self, list: &str, cause: &Cause, visitor: &mut dyn Visitor) {
        self.failed_lists.push(list.to_owned());
        let tasks = self.parked.remove(list).into_iter().flatten();
        let fault = Fault::Unchecked(format!("{list} ({cause})"));
        let cause = Cause::Download(fault);
        for task in tasks {
            self.give_up(&task, &cause, visitor);
        }
    }

    /// The keys of the files that wait for deletions.
    pub(in crate::find) fn blocked(&self, store: &Store) -> impl Iterator<Item = Vec<u8>> {
        let root = &store.to.root;
        self.blocked
            .iter()
            .map(|task| root.key(task.name.segments()))
    }

    /// What was in the way of files is deleted, or stays: the files that waited for it go on.
    pub(in crate::find) fn unblock(&mut self) {
        for task in std::mem::take(&mut self.blocked) {
            self.queue.push_next(task);
        }
    }

    /// Files that were given up because too many are blocked.
    pub(in crate::find) fn crowded(&self) -> u64 {
        self.crowded
    }
}

/// The largest list in bytes.
const MOST_LIST_BYTES: usize = 32 << 20;
