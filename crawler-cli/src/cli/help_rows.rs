//! The options of all commands that ask for a text instead of a run.

use std::marker::PhantomData;

use super::option::{Opt, Set, Show};

/// The rows, for the arguments `A` of a command.
pub(crate) struct HelpRows<A>(PhantomData<A>);

impl<A: 'static> HelpRows<A> {
    pub(crate) const ALL: &'static [Opt<A>] = &[
        Opt::show(&["-h"], Show::ShortHelp)
            .short("an overview")
            .long("Print an overview with one line for each option."),
        Opt::show(&["--help", "-help"], Show::LongHelp)
            .short("the full help")
            .long("Print this help."),
        Opt::show(&["--man"], Show::Man)
            .short("the man page, for man -l -")
            .long("Print the man page as roff, for: man -l -"),
        Opt::show(&["--version", "-version"], Show::Version)
            .short("the version")
            .long("Print the version."),
        Opt::new(&["--"], &[], Set::Operands)
            .short("no options follow")
            .long("Take no argument after this one for an option."),
    ];
}
