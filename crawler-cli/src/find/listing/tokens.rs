//! HTML as a stream of tags, attributes and text.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// What takes the stream.
pub(super) trait Events {
    /// A start tag; its attributes follow. Names are in lower case.
    fn open(&mut self, name: &[u8]);
    /// An attribute whose value is not empty.
    fn attribute(&mut self, name: &[u8], value: &[u8]);
    /// An end tag.
    fn close(&mut self, name: &[u8]);
    /// Text, perhaps one part of several, with its references decoded.
    fn text(&mut self, text: &[u8]);
    /// Whether nothing more is wanted.
    fn is_full(&self) -> bool;
}

/// Tokenises as a browser does.
pub(super) fn read(body: &[u8], events: &mut impl Events) {
    let mut attribute = Vec::new();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        match event {
            CallbackEvent::OpenStartTag { name } => events.open(name),
            CallbackEvent::AttributeName { name } => {
                attribute.clear();
                attribute.extend_from_slice(name);
            }
            CallbackEvent::AttributeValue { value } => events.attribute(&attribute, value),
            CallbackEvent::EndTag { name } => events.close(name),
            CallbackEvent::String { value } => events.text(value),
            _ => {}
        }
        events.is_full().then_some(())
    });
    // Scripts and styles are text, whatever tags they seem to hold.
    emitter.naively_switch_states(true);
    // Only the callback's wish to stop is ever yielded.
    let _ = Tokenizer::new_with_emitter(body, emitter).next();
}
