//! The options of `crawler-cli get` about forms: curl's names.

use super::Args;
use super::values::push;
use crate::cli::option::{self, any, file};
use crate::get::form::FieldArg;

type Opt = option::Opt<Args>;

pub(super) const FORMS: &[Opt] = &[
    Opt::bytes(&["-F", "--form"], &[file("<name=content>")], |args, v| {
        push(&mut args.group.form.fields, FieldArg::Field(v))
    })
    .short("POST this field of a form: name=text, name=@file, name=<file")
    .long(
        "POST a form (multipart/form-data) with this field: name=text, name=@file to upload a file, or name=<file for the text in a file; - is stdin. Several files are name=@a,b.\n\
         After a semicolon may stand type=TYPE, filename=NAME, headers=\"LINE\" or headers=@FILE, and encoder=8bit (or binary, 7bit, base64, quoted-printable). A text with a comma or a semicolon is in double quotes. name=( begins a part that has the following fields as its parts, and =) ends it.",
    ),
    Opt::bytes(&["--form-string"], &[any("<name=text>")], |args, v| {
        push(&mut args.group.form.fields, FieldArg::Text(v))
    })
    .short("Same as --form, but nothing in the text is special"),
    Opt::switch(&["--form-escape"], |args, on| {
        args.group.form.backslashes = on
    })
    .short("Put a backslash before quotes in names of fields and files"),
];
