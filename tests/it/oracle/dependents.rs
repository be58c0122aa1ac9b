//! Documents that are sent only beside others (rule S18).

use super::*;

impl Oracle<'_> {
    /// Returns true if a document is sent only beside others: those of the last prompt stay without them, and
    /// those that were also retrieved for themselves need none.
    pub fn depends(&self, at: usize) -> bool {
        let requires = !self.items[at].requires.is_empty() && self.place_in_the_set(at) == usize::MAX;
        requires
            && !self
                .duplicates()
                .into_iter()
                .any(|(copy, of)| of == self.items[at].id && self.items[copy].requires.is_empty())
    }

    /// Returns true if a document with one of the required ids is kept, or if another text has its text.
    fn is_beside(&self, at: usize, out: &BTreeMap<Unit, String>) -> bool {
        let documents = self.documents();
        let is_there = |id: &str| {
            documents.iter().any(|(other, never)| {
                let reason = out.get(&Unit::Document(*other));
                let is_repeated = reason.is_some_and(|reason| {
                    ["near_duplicate", "repeats", "in_window"].iter().any(|name| reason.starts_with(name))
                });
                let has_id = never.is_none() && self.items[*other].id == id;
                has_id && (self.kept.contains_key(&Unit::Document(*other)) || is_repeated)
            })
        };
        self.items[at]
            .requires
            .iter()
            .any(|id| is_there(id) || self.same_text(id).iter().any(|of| is_there(of)))
    }

    /// Returns the ids of the documents that duplicates with this id repeat.
    fn same_text(&self, id: &str) -> Vec<&'static str> {
        self.duplicates().into_iter().filter(|(at, _)| self.items[*at].id == id).map(|(_, of)| of).collect()
    }

    /// Returns the duplicates, each with the id of the document that it repeats.
    pub fn duplicates(&self) -> Vec<(usize, &'static str)> {
        let mut known: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        for (at, never) in self.documents() {
            let item = &self.items[at];
            if never.is_none() {
                known.push(at);
            } else if never.as_deref() == Some("duplicate") {
                let same_id = known.iter().find(|known| self.items[**known].id == item.id);
                let same_text = || known.iter().find(|known| self.items[**known].text == item.text);
                found.extend(same_id.or_else(same_text).map(|of| (at, self.items[*of].id)));
            }
        }
        found
    }

    /// Offers the tokens that nothing else can use to the documents that depend on others, the best rank
    /// first, and again from the start after each one.
    pub fn offer_dependents(&mut self, room: i64, cap: i64, share: i64, out: &mut BTreeMap<Unit, String>) {
        let room = if self.has_a_set() { room.min(share - self.used(Section::Rag)) } else { room };
        let mut left = room.min(cap).max(0);
        let mut tried: BTreeSet<usize> = BTreeSet::new();
        loop {
            let next = self.documents().into_iter().find(|(at, never)| {
                let is_open = never.is_none() && self.depends(*at) && !self.left.contains_key(at);
                let is_new = !tried.contains(at) && !self.kept.contains_key(&Unit::Document(*at));
                is_open && is_new && self.is_beside(*at, out)
            });
            let Some((at, _)) = next else { return };
            tried.insert(at);
            let before = self.used(Section::Rag);
            match self.offer_one(at, left, (room.max(0), cap), false, false) {
                Some(reason) if reason.starts_with("budget") && self.has_a_set() => {
                    out.insert(Unit::Document(at), "budget/sticky_documents".to_owned());
                }
                Some(reason) => drop(out.insert(Unit::Document(at), reason)),
                None => drop(out.remove(&Unit::Document(at))),
            }
            left -= self.used(Section::Rag) - before;
        }
    }
}
