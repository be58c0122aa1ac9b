//! The log of a conversation, which its plans share.

use crate::error::input;
use context_window::Conversation;
use std::{
    cell::{Ref, RefCell, RefMut},
    rc::Rc,
};
use wasm_bindgen::JsValue;

/// A log that plans keep, so that they can answer questions later.
#[derive(Clone)]
pub(crate) struct SharedLog(Rc<RefCell<Conversation>>);

impl SharedLog {
    pub(crate) fn new(log: Conversation) -> Self {
        Self(Rc::new(RefCell::new(log)))
    }

    /// Returns the log for reading. Fails inside of a counter that is called for a change.
    pub(crate) fn read(&self) -> Result<Ref<'_, Conversation>, JsValue> {
        // A counter of the application runs in the middle of a call, and can make every other call. A panic
        // would end the whole module.
        self.0.try_borrow().map_err(|_| busy())
    }

    /// Returns the log for a change. Fails inside of a counter that is called for this log.
    pub(crate) fn change(&self) -> Result<RefMut<'_, Conversation>, JsValue> {
        self.0.try_borrow_mut().map_err(|_| busy())
    }
}

fn busy() -> JsValue {
    input("conversation: in use by the call that called this counter; expected a counter that only counts")
}
