//! Options that mean nothing without another one. Such an option is wrong usage: what the user wants is not what would
//! happen.

use super::args::Args;
use crate::cli::parse::UsageError;
use crate::find::Follow;
use crate::find::expr::Expression;
use crate::report::Format;

/// Some options and what they need.
struct Need {
    options: &'static [&'static str],
    is_met: fn(&Args) -> bool,
    /// The rest of the message, after "only".
    only: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        options: &["--limit-rate", "--overwrite"],
        is_met: |args| args.folder.is_given(),
        only: "with --download DIR",
    },
    Need {
        options: &["--max-pages"],
        is_met: |args| args.folder.follow == Follow::Pages,
        only: "with --links page",
    },
];

impl Args {
    /// Checks that each option that was typed has what it needs.
    ///
    /// # Errors
    /// The first one that has not.
    pub(super) fn check_needs(&self) -> Result<(), UsageError> {
        for need in NEEDS.iter().filter(|need| !(need.is_met)(self)) {
            if let Some(option) = need.options.iter().find(|option| self.is_typed(option)) {
                return Err(UsageError(format!("{option}: only {}", need.only)));
            }
        }
        Ok(())
    }

    /// Checks that some entry is printed in the output format that was asked for.
    ///
    /// # Errors
    /// All actions of the expression print in a format of their own, or print nothing.
    pub(super) fn check_format(&self, expression: &Expression) -> Result<(), UsageError> {
        let format = self.output.format;
        if format == Format::Lines || expression.prints() {
            return Ok(());
        }
        Err(UsageError(format!(
            "{}: only for what -print prints; the actions of the expression do something else",
            format.option()
        )))
    }
}
