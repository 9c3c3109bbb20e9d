//! Names that turn out to be files, and redirects of tasks from listings.

use url::Url;

use super::HostCrawl;
use super::entries::ProbeResult;
use super::messages::Reply;
use super::task::{Task, TaskKind};
use crate::cause::Cause;
use crate::expr::Verdict;
use crate::found::Kind;
use crate::policy::Follow;
use crate::visitor::Turn;
use crawl::redirect;
use listing;
use listing::path;

/// Names and redirects.
impl HostCrawl {
    /// The server answered a request for something that is not a directory.
    pub(super) fn exists(&mut self, turn: &mut Turn<'_>, mut task: Task, probed: ProbeResult) {
        match task.kind {
            TaskKind::File => {
                if let Some(open) = &task.open
                    && let Some(listed) = open.modified.filter(|time| !time.utc)
                    && let Some(modified) = probed.modified
                {
                    self.probes.learn_zone(listed, modified);
                }
            }
            TaskKind::Link => {
                self.linked_file(turn, task, probed);
                return;
            }
            kind => {
                // A name that turned out to be a file.
                self.counts.files += 1;
                self.counts.directories_done += u64::from(kind == TaskKind::Start);
            }
        }
        self.decide(turn, &mut task, Kind::File, probed, None);
    }

    pub(super) fn redirect(&mut self, turn: &mut Turn<'_>, mut task: Task, reply: &Reply<'_>) {
        let to = match self.led_to(&task, reply.location) {
            Ok(to) => to,
            Err(cause) => return self.give_up(turn, task, &cause),
        };
        if task.kind == TaskKind::Link {
            return self.linked_redirect(turn, task, &to, reply);
        }
        let named = matches!(task.kind, TaskKind::Unknown(_) | TaskKind::File);
        let probed = ProbeResult::nothing(reply);
        let of_name = named.then(|| self.directory_of_name(&task, &to));
        let target = match of_name.flatten() {
            Some(directory) => Ok(directory),
            None => self.redirect_target(&task, &to),
        };
        let target = match target {
            Ok(target) => target,
            // The name redirects elsewhere: it exists, but is not a directory here.
            Err(Cause::Elsewhere(_)) if named => return self.exists(turn, task, probed),
            Err(Cause::Elsewhere(_)) if let Some(target) = self.other_directory(&task, &to) => {
                let chain = self.chain_of(&task);
                self.counts.directories_done += 1;
                return match self.is_allowed(&target) {
                    true => self.add_start_at(&target, chain),
                    false => self.leave_out_once(turn, to.as_str(), &Cause::Robots),
                };
            }
            Err(Cause::Elsewhere(_)) if let Some(gate) = self.gate_at(&task, &to, reply) => {
                task.gate = Some(Box::new(gate));
                return self.queue(task.followed());
            }
            Err(cause @ Cause::Elsewhere(_)) => {
                return match self.moves_elsewhere(turn, &task, &to) {
                    Ok(true) => {
                        // The directory is searched on its new host.
                        self.counts.directories_done += 1;
                        self.close(turn, task);
                    }
                    Ok(false) => self.give_up(turn, task, &cause),
                    Err(cause) => self.give_up(turn, task, &cause),
                };
            }
            Err(Cause::RedirectLoop) if self.is_gate(reply) => {
                return self.queue(task.followed());
            }
            Err(cause) => return self.give_up(turn, task, &cause),
        };
        let canonical = path::canonical(&target);
        if named {
            let is_same = canonical == format!("{}/", path::canonical(&task.target));
            if !is_same || self.policy.follow == Follow::Pages {
                return self.exists(turn, task, probed);
            }
            let open = task.take_open();
            if task.kind == TaskKind::File {
                // The listing named it as a file.
                self.probes.handle_decided();
                self.counts.files -= 1;
            }
            let found = task.shows(turn.now, Kind::Directory, task.depth);
            let mut directory = Task::new(target, TaskKind::Directory, task.start, task.depth);
            directory.above = task.above;
            return self.directory(turn, directory, open, found);
        }
        if task.kind == TaskKind::Start && canonical == self.starts.directory(task.start) {
            // The start was given without its final `/`.
            let start = Task {
                redirects: task.redirects + 1,
                ..Task::new(target, TaskKind::Start, task.start, 0)
            };
            return match self.is_allowed(&start.target) {
                true => self.queue(start),
                false => self.give_up(turn, start, &Cause::Robots),
            };
        }
        if task.kind == TaskKind::Start || task.open.is_some() {
            let probed = ProbeResult::default();
            let verdict = self.decide(turn, &mut task, Kind::Directory, probed, Some(false));
            if matches!(verdict, Verdict::Prune | Verdict::Quit) {
                return self.counts.directories_done += 1;
            }
        }
        self.counts.directories_done += 1;
        let Some(start) = self.starts.innermost(&canonical) else {
            return;
        };
        let depth = path::depth_below(self.starts.directory(start), &canonical);
        let next = Task {
            redirects: task.redirects + 1,
            ..Task::new(target, TaskKind::Directory, start, depth)
        };
        self.enqueue(turn, next, &canonical);
    }

    /// The name with a final `/`, if a redirect adds one, whatever it says of the server and of the directories above: a
    /// server behind a proxy names itself as it knows itself.
    fn directory_of_name(&self, task: &Task, to: &Url) -> Option<String> {
        let bare = to.path().trim_end_matches('/');
        let last = |path: &str| path::split_last(path).map(|(_, name, _)| path::decode(name));
        let adds_slash = bare.len() < to.path().len() && !task.target.ends_with('/');
        let is_same = adds_slash && last(bare).is_some() && last(bare) == last(&task.target);
        // What another host knows by another path is another thing.
        let agrees = bare.ends_with(&task.target) || task.target.ends_with(bare);
        let is_here = to.host() == self.origin().host();
        (is_same && (is_here || agrees)).then(|| format!("{}/", task.target))
    }

    /// The directory of this host that takes the place of a start, which redirects to it.
    fn other_directory(&self, task: &Task, to: &Url) -> Option<String> {
        let is_here = to.origin() == self.origin().origin() && to.path().ends_with('/');
        let is_plain = to.query().is_none_or(listing::is_sort_query);
        let is_start = task.kind == TaskKind::Start && self.policy.follow == Follow::Listings;
        (is_start && is_here && is_plain).then(|| to.path().to_owned())
    }

    /// The URL to which a redirect leads, if a further one may be followed.
    fn led_to(&self, task: &Task, location: Option<&[u8]>) -> Result<Url, Cause> {
        let page = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let to = redirect::target(&page, location).map_err(|_| Cause::NoLocation)?;
        match self.policy.limits.redirects {
            limit if task.redirects >= limit => Err(Cause::TooManyRedirects(limit)),
            _ => Ok(to),
        }
    }

    /// The path to which a redirect leads, if the crawl may go there.
    fn redirect_target(&self, task: &Task, to: &Url) -> Result<String, Cause> {
        let same_host = to.origin() == self.origin().origin();
        let plain = to.query().is_none_or(listing::is_sort_query);
        let segments: Vec<String> = to.path().split('/').map(path::normalise_segment).collect();
        let target = segments.join("/");
        let canonical = path::canonical(&target);
        let is_below = same_host && plain && self.starts.innermost(&canonical).is_some();
        if !is_below || !target.ends_with('/') {
            return Err(Cause::Elsewhere(to.to_string()));
        }
        let from = path::canonical(&task.target);
        if canonical == from {
            return Err(Cause::RedirectLoop);
        }
        if task.kind == TaskKind::Directory && from.starts_with(&canonical) {
            return Err(Cause::RedirectUp(to.to_string()));
        }
        Ok(target)
    }
}
