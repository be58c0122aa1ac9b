//! The forms of documents (rule S17).

use super::*;
use context_window::config::Variants;

impl Oracle<'_> {
    /// Returns the form of a document: that in which it is kept, else the fullest that may be sent.
    pub fn form(&self, at: usize) -> usize {
        self.forms.get(&at).copied().unwrap_or_else(|| self.forms_of(at)[0])
    }

    /// Returns the name of the form in which a document is kept, after a space.
    pub fn form_name(&self, at: usize) -> String {
        let form = self.form(at);
        if form == 0 { String::new() } else { format!(" v{}", form - 1) }
    }

    /// Returns the forms in which a document may be sent, the fullest first: 0 is the whole text.
    pub fn forms_of(&self, at: usize) -> Vec<usize> {
        let most = self.s.config.rag.max_item_tokens.map_or(i64::MAX, |most| most as i64);
        let mut forms = match self.place_in_the_set(at) {
            usize::MAX if self.s.config.rag.variants == Variants::Off => vec![0],
            usize::MAX => self.sendable_forms(at),
            _ => vec![self.form_before(at)],
        };
        let last = forms[forms.len() - 1];
        forms.retain(|form| self.size_in(at, *form) <= most);
        if forms.is_empty() { vec![last] } else { forms }
    }

    /// Returns the whole text and the variants with text.
    fn sendable_forms(&self, at: usize) -> Vec<usize> {
        let item = &self.items[at];
        let may_be_sent =
            |variant: &usize| !item.variants[*variant].trim().is_empty() && item.recalls.is_none();
        let variants = (0..item.variants.len()).filter(may_be_sent).map(|variant| variant + 1);
        std::iter::once(0).chain(variants).collect()
    }

    /// Returns the form of a document in the last prompt, if the document has it still.
    pub fn form_before(&self, at: usize) -> usize {
        let Some(before) = &self.s.before else { return 0 };
        let place = before.set.iter().position(|id| *id == self.items[at].id);
        let name = before.variants.iter().find(|(known, _)| Some(*known as usize) == place);
        let form = name.map_or(0, |(_, name)| name + 1);
        if self.sendable_forms(at).contains(&form) { form } else { 0 }
    }

    /// Lets a kept document take the fullest form for which the tokens suffice, of which `left` are left.
    /// Returns the tokens left then.
    pub fn grow(&mut self, at: usize, left: i64) -> i64 {
        let (now, paid) = (self.form(at), self.size(Unit::Document(at)));
        let others: Vec<usize> = self.included_documents().into_iter().filter(|other| *other != at).collect();
        for form in self.forms_of(at).into_iter().take_while(|form| *form != now) {
            let more = self.size_in(at, form) - paid;
            if more <= left && self.over_a_limit_of_tokens(at, form, &others).is_none() {
                self.forms.insert(at, form);
                return left - more;
            }
        }
        left
    }

    /// Lets all documents grow at the end, by rank.
    pub fn grow_at_the_end(&mut self, room: i64, cap: i64, share: i64) {
        let mut left = room.min(cap);
        if self.has_a_set() {
            left = left.min(share - self.used(Section::Rag));
        }
        let mut left = left.max(0);
        for (at, _) in self.documents() {
            if self.kept.contains_key(&Unit::Document(at)) {
                left = self.grow(at, left);
            }
        }
    }
}
