//! The number of files that the process may open.

use std::num::NonZeroUsize;

use rustix::process::{Resource, getrlimit};

use crate::core::{Limit, Limits};

/// Lowers the limit of connections to what the process may open, so that the store, the jobs and the hands of the operator
/// keep their files. Returns what the operator should know.
pub(super) fn fit(limits: &mut Limits) -> Option<String> {
    let most = getrlimit(Resource::Nofile).current?;
    let most = usize::try_from(most).ok()?;
    let room = room(most);
    if limits.connections.at().is_some_and(|wanted| wanted <= room) {
        return None;
    }
    let wanted = limits.connections.at();
    limits.connections = Limit::At(room);
    // Without a limit, none is missed.
    wanted.map(|wanted| {
        format!(
            "the process may have {most} open files: there are at most {room} connections instead of {wanted} \
             (limits.connections). 'ulimit -n', or LimitNOFILE of systemd, allows more"
        )
    })
}

/// How many connections leave enough files for the rest.
fn room(most: usize) -> NonZeroUsize {
    let room = most.saturating_sub(RESERVED).max(most / 4);
    NonZeroUsize::new(room).unwrap_or(NonZeroUsize::MIN)
}

/// Files of the store, of jobs, and of those who ask for metrics or give commands.
const RESERVED: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_process_keeps_files() {
        for (most, connections) in [(1024, 896), (512, 384), (160, 40), (48, 12), (2, 1), (0, 1)] {
            assert_eq!(room(most).get(), connections, "{most}");
        }
    }
}
