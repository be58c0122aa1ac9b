//! Documents that are sent together or not at all (rule S19).

use super::*;
use context_window::config::Variants;

/// The texts of a group.
struct Parts {
    /// Its documents that are not in the last prompt, by rank.
    members: Vec<usize>,
    /// The other documents that it needs.
    others: Vec<usize>,
}

impl Oracle<'_> {
    /// Returns the group of a document that a policy excludes because of another member, or `None`.
    pub fn is_in_incomplete_group(&self, at: usize, incomplete: &BTreeSet<&'static str>) -> bool {
        let group = self.items[at].group.filter(|_| self.place_in_the_set(at) == usize::MAX);
        group.is_some_and(|group| incomplete.contains(group))
    }

    /// Returns the groups with a document that a policy excludes, whatever the budget.
    pub fn incomplete_groups(&self, documents: &[(usize, Option<String>)]) -> BTreeSet<&'static str> {
        let is_out = |out: &Option<String>| out.as_deref().is_some_and(|out| out != "duplicate");
        documents.iter().filter(|(_, out)| is_out(out)).filter_map(|(at, _)| self.items[*at].group).collect()
    }

    /// Returns the texts of a document's group. Returns `None` if it has none, or stays from the last prompt.
    fn group(&self, at: usize) -> Option<Parts> {
        let stays = |at: usize| self.place_in_the_set(at) < usize::MAX;
        let name = self.items[at].group.filter(|_| !stays(at))?;
        let admitted: Vec<usize> =
            self.documents().into_iter().filter(|(_, out)| out.is_none()).map(|(at, _)| at).collect();
        let repeated: Vec<(usize, usize)> = self
            .duplicates()
            .into_iter()
            .filter_map(|(copy, of)| Some((copy, *admitted.iter().find(|at| self.items[**at].id == of)?)))
            .collect();
        // Groups that share a text are one.
        let mut names = BTreeSet::from([name]);
        loop {
            let before = names.len();
            for (copy, of) in repeated.iter().filter(|(_, of)| !stays(*of)) {
                if let (Some(a), Some(b)) = (self.items[*copy].group, self.items[*of].group)
                    && (names.contains(a) || names.contains(b))
                {
                    names.extend([a, b]);
                }
            }
            if names.len() == before {
                break;
            }
        }
        let is_of_group = |at: usize| self.items[at].group.is_some_and(|group| names.contains(group));
        let (members, mut others): (Vec<usize>, Vec<usize>) =
            admitted.iter().copied().filter(|at| is_of_group(*at)).partition(|at| !stays(*at));
        others.extend(repeated.iter().filter(|(copy, _)| is_of_group(*copy)).map(|(_, of)| *of));
        others.retain(|other| !members.contains(other));
        Some(Parts { members, others })
    }

    /// Offers the `left` tokens of a room to the group of a document. Returns the reasons of its members that
    /// are not kept, or `None` if it has no group.
    pub fn offer_group(
        &mut self,
        at: usize,
        left: i64,
        (room, cap): (i64, i64),
        stopped: bool,
    ) -> Option<BTreeMap<usize, String>> {
        let Parts { members, others } = self.group(at)?;
        let is_kept = |oracle: &Self, at: usize| oracle.kept.contains_key(&Unit::Document(at));
        let is_open = |oracle: &Self, at: usize| !is_kept(oracle, at) && !oracle.left.contains_key(&at);
        let open: Vec<usize> = members.iter().copied().filter(|at| is_open(self, *at)).collect();
        let refused =
            |reason: &str| open.iter().map(|at| (*at, reason.to_owned())).collect::<BTreeMap<_, _>>();
        let may_be_missing = |at: usize| self.place_in_the_set(at) < usize::MAX || self.depends(at);
        if others.iter().any(|at| may_be_missing(*at) && !is_kept(self, *at)) {
            return Some(refused("group"));
        }
        let needed = |at: &usize| (members.contains(at) || others.contains(at)) && is_open(self, *at);
        let parts: Vec<usize> = self.documents().into_iter().map(|(at, _)| at).filter(needed).collect();
        let (before, used) = ((self.kept.clone(), self.forms.clone()), self.used(Section::Rag));
        let mut out = BTreeMap::new();
        for part in &parts {
            let included = self.included_documents();
            if let Some(reason) = self.near_duplicate(*part, &included).or_else(|| self.repeats(*part)) {
                if open.contains(part) {
                    out.insert(*part, reason);
                }
                continue;
            }
            let there = left - (self.used(Section::Rag) - used);
            let Some(reason) = self.offer_one(*part, there, (room, cap), stopped, true) else { continue };
            (self.kept, self.forms) = before;
            if reason == "budget/size" && parts.len() > 1 {
                return Some(refused("budget/group"));
            }
            if reason.starts_with("budget") {
                return Some(refused(&reason));
            }
            let mut all = refused("group");
            if let Some(own) = all.get_mut(part) {
                *own = reason;
            }
            return Some(all);
        }
        if self.s.config.rag.variants == Variants::Depth {
            let mut there = left - (self.used(Section::Rag) - used);
            for part in parts {
                if is_kept(self, part) {
                    there = self.grow(part, there);
                }
            }
        }
        Some(out)
    }
}
