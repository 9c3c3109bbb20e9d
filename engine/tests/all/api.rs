//! The public interface of the engine, as the file `api.txt` has it: a change of either without the other fails.
//!
//! `UPDATE_API=1 cargo test --workspace --test all -- api::` writes the file. A line that is removed or changed there is a
//! breaking change (see the README's promises); a new line is none.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens as _;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Block, Fields, File, Ident, ImplItem, ImplItemConst, Item, ItemConst, ItemImpl,
    ItemMod, ItemStruct, Meta, PatIdent, Receiver, Type, UseTree, Visibility, parse_quote,
};

/// A reference to an answer may be held across an await on an executor of several threads.
#[test]
fn answers_are_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<courser::Response>();
    is_shared::<courser::SharedBody>();
}

#[test]
fn the_interface_is_the_one_on_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let now = Crate::read(&root.join("src")).listing();
    let record = root.join("api.txt");
    if env::var_os("UPDATE_API").is_some() {
        fs::write(&record, &now).expect("api.txt can be written");
    }
    let before = fs::read_to_string(&record).unwrap_or_default();
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (before.lines().collect(), now.lines().collect());
    let gone = old.difference(&new).map(|line| format!("\n- {line}"));
    let added = new.difference(&old).map(|line| format!("\n+ {line}"));
    assert!(
        before == now,
        "api.txt is not what the source has; UPDATE_API=1 writes it anew{}",
        gone.chain(added).collect::<String>()
    );
}

/// The parsed files of a crate, each with its path below `src`.
struct Crate {
    root: PathBuf,
    files: BTreeMap<PathBuf, File>,
}

/// Where an exported name is defined: below this folder or file of `src`.
type Exports = BTreeMap<String, (String, String)>;

impl Crate {
    fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder of sources") {
                let path = entry.expect("a source").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "rs")
                    && !path.ends_with("tests.rs")
                    && !path.ends_with("no_tls.rs")
                {
                    let text = fs::read_to_string(&path).expect("a source");
                    let file = syn::parse_file(&text).expect("Rust");
                    let name = path.strip_prefix(root).expect("below").to_owned();
                    files.insert(name, file);
                }
            }
        }
        let root = root.to_owned();
        Self { root, files }
    }

    fn listing(&self) -> String {
        let mut exports = Exports::new();
        let mut foreign = BTreeSet::new();
        self.export(
            "courser",
            Path::new("lib.rs"),
            "",
            &mut exports,
            &mut foreign,
        );
        let mut text = String::new();
        for name in foreign {
            text.push_str(&format!("pub use {name};\n"));
        }
        let mut first_paths = BTreeMap::new();
        for (path, (name, top)) in &exports {
            let items = self.items(name, top);
            assert!(
                !items.is_empty(),
                "{path} is exported, and not found in {top:?}"
            );
            let file = File {
                shebang: None,
                attrs: Vec::new(),
                items,
            };
            let definition = prettyplease::unparse(&file);
            text += &match first_paths.get(&definition) {
                Some(first) => format!("\n// {path}: {first}\n"),
                None => format!("\n// {path}\n{definition}"),
            };
            first_paths.entry(definition).or_insert(path);
        }
        text
    }

    /// What a module exports.
    fn export(
        &self,
        path: &str,
        file: &Path,
        folder: &str,
        exports: &mut Exports,
        foreign: &mut BTreeSet<String>,
    ) {
        let Some(parsed) = self.files.get(file) else {
            panic!("no source {}", self.root.join(file).display());
        };
        for item in &parsed.items {
            match item {
                Item::Use(it) if is_public(&it.vis) => {
                    for (segments, name) in leaves(&it.tree) {
                        let first = segments.first().map_or("", String::as_str);
                        let inner = match first {
                            "self" | "crate" => segments.get(1).map_or("", String::as_str),
                            other => other,
                        };
                        let top = match (folder, first) {
                            (_, "crate") | ("", _) => inner.to_owned(),
                            (folder, _) => folder.to_owned(),
                        };
                        match self.files.keys().any(|file| is_below(file, &top)) {
                            true => {
                                exports.insert(format!("{path}::{name}"), (name, top));
                            }
                            false => _ = foreign.insert(segments.join("::")),
                        }
                    }
                }
                Item::Mod(ItemMod { vis, ident, .. }) if is_public(vis) => {
                    let name = ident.to_string();
                    if name == "manual" {
                        continue;
                    }
                    let inside = Path::new(folder).join(&name);
                    let candidates = [inside.with_extension("rs"), inside.join("mod.rs")];
                    let file = candidates.iter().find(|it| self.files.contains_key(*it));
                    let file = file.expect("the file of a module");
                    let folder = inside.to_str().expect("UTF-8");
                    self.export(&format!("{path}::{name}"), file, folder, exports, foreign);
                }
                other => {
                    if let Some(name) = public_name(other)
                        && !folder.is_empty()
                    {
                        exports.insert(format!("{path}::{name}"), (name, folder.to_owned()));
                    }
                }
            }
        }
    }

    /// The definition with this name below this place, and what is implemented for it.
    fn items(&self, name: &str, top: &str) -> Vec<Item> {
        // A layer with a type of its own of this name implements for that one.
        let has_type = |it: &Item| type_name(it).as_deref() == Some(name);
        let has_other = |file: &Path| {
            let layer = |path: &Path| path.components().next() == file.components().next();
            let mut layer = self.files.iter().filter(|(path, _)| layer(path));
            layer.any(|(_, file)| file.items.iter().any(has_type))
        };
        let has_name = |item: &Item| public_name(item).as_deref() == Some(name);
        let has_definition = |(path, file): (&PathBuf, &File)| {
            is_below(path, top) && file.items.iter().any(has_name)
        };
        // A layer may pass on what a layer below it defines.
        let top = match self.files.iter().any(has_definition) {
            true => top,
            false => "",
        };
        let mut items = Vec::new();
        let mut implemented = Vec::new();
        for (path, file) in &self.files {
            let is_here = is_below(path, top);
            for item in file
                .items
                .iter()
                .filter(|item| !is_for_tests(attributes(item)))
            {
                match item {
                    Item::Impl(it) if is_here || !has_other(path) => {
                        if is_for(it, name)
                            && let Some(it) = outline(it)
                        {
                            implemented.push(Item::Impl(it));
                        }
                    }
                    item if is_here && has_name(item) => {
                        let mut item = item.clone();
                        Strip.visit_item_mut(&mut item);
                        items.push(item);
                    }
                    _ => {}
                }
            }
        }
        implemented.sort_by_key(|item| item.to_token_stream().to_string());
        items.extend(implemented);
        items
    }
}

/// Whether a file of `src` is this module or below it. The crate itself has no name.
fn is_below(file: &Path, module: &str) -> bool {
    module.is_empty() || file.starts_with(module) || file == Path::new(module).with_extension("rs")
}

/// The names that a `use` brings, each with its path.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(it) => {
            let inner = leaves(&it.tree).into_iter();
            let before = |(mut segments, name): (Vec<String>, String)| {
                segments.insert(0, it.ident.to_string());
                (segments, name)
            };
            inner.map(before).collect()
        }
        UseTree::Name(it) => vec![(vec![it.ident.to_string()], it.ident.to_string())],
        UseTree::Rename(it) => vec![(vec![it.ident.to_string()], it.rename.to_string())],
        UseTree::Group(it) => it.items.iter().flat_map(leaves).collect(),
        UseTree::Glob(_) => panic!("a glob exports names that nobody has written down"),
    }
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

/// The visibility, the name and the attributes of what may be exported.
fn parts(item: &Item) -> Option<(&Visibility, &Ident, &[Attribute])> {
    Some(match item {
        Item::Const(it) => (&it.vis, &it.ident, &it.attrs),
        Item::Enum(it) => (&it.vis, &it.ident, &it.attrs),
        Item::Fn(it) => (&it.vis, &it.sig.ident, &it.attrs),
        Item::Struct(it) => (&it.vis, &it.ident, &it.attrs),
        Item::Trait(it) => (&it.vis, &it.ident, &it.attrs),
        Item::Type(it) => (&it.vis, &it.ident, &it.attrs),
        _ => return None,
    })
}

fn public_name(item: &Item) -> Option<String> {
    let (vis, name, _) = parts(item)?;
    is_public(vis).then(|| name.to_string())
}

fn type_name(item: &Item) -> Option<String> {
    let is_type = matches!(item, Item::Enum(_) | Item::Struct(_) | Item::Type(_));
    parts(item).filter(|_| is_type).map(|it| it.1.to_string())
}

fn is_for(it: &ItemImpl, name: &str) -> bool {
    matches!(&*it.self_ty, Type::Path(path) if path.path.segments.last().is_some_and(|it| it.ident == name))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Impl(it) => &it.attrs,
        other => parts(other).map_or(&[], |it| it.2),
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let test: Meta = parse_quote!(cfg(test));
    attributes.iter().any(|it| it.meta == test)
}

/// Takes out what users do not notice: documentation, bodies, values and private fields, and whether a function changes an
/// argument that it owns.
struct Strip;

impl VisitMut for Strip {
    fn visit_attributes_mut(&mut self, all: &mut Vec<Attribute>) {
        let kept = ["cfg", "deprecated", "derive", "must_use", "non_exhaustive"];
        all.retain(|it| kept.iter().any(|name| it.path().is_ident(name)));
    }

    fn visit_block_mut(&mut self, it: &mut Block) {
        it.stmts.clear();
    }

    fn visit_item_const_mut(&mut self, it: &mut ItemConst) {
        *it.expr = parse_quote!(_);
        visit_mut::visit_item_const_mut(self, it);
    }

    fn visit_impl_item_const_mut(&mut self, it: &mut ImplItemConst) {
        it.expr = parse_quote!(_);
        visit_mut::visit_impl_item_const_mut(self, it);
    }

    fn visit_item_struct_mut(&mut self, it: &mut ItemStruct) {
        match &mut it.fields {
            Fields::Named(fields) => {
                let all = std::mem::take(&mut fields.named);
                fields.named = all.into_iter().filter(|it| is_public(&it.vis)).collect();
            }
            fields => {
                for field in fields.iter_mut().filter(|it| !is_public(&it.vis)) {
                    field.vis = parse_quote!(pub(self));
                    field.ty = parse_quote!(_);
                }
            }
        }
        visit_mut::visit_item_struct_mut(self, it);
    }

    fn visit_receiver_mut(&mut self, it: &mut Receiver) {
        if it.reference.is_none() {
            it.mutability = None;
        }
    }

    fn visit_pat_ident_mut(&mut self, it: &mut PatIdent) {
        it.mutability = None;
    }
}

/// The public functions of an `impl`, or that a trait is implemented; `None` if users see nothing of it.
fn outline(it: &ItemImpl) -> Option<ItemImpl> {
    let mut it = it.clone();
    Strip.visit_item_impl_mut(&mut it);
    if let Some((_, path, _)) = &it.trait_ {
        let is_sealed = path
            .segments
            .iter()
            .any(|segment| segment.ident == "sealed");
        it.items.retain(|item| matches!(item, ImplItem::Type(_)));
        return (!is_sealed).then_some(it);
    }
    it.items.retain(|item| match item {
        ImplItem::Fn(it) => is_public(&it.vis) && !is_for_tests(&it.attrs),
        ImplItem::Const(it) => is_public(&it.vis),
        _ => false,
    });
    (!it.items.is_empty()).then_some(it)
}
