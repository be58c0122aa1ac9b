//! Grades of sentences: how much the words of one say that it is a rule of the user.

use super::{
    cues::{Cues, Kind, Match, Matches},
    words::{COLON, COMMA, Words},
};

/// How much the words of a sentence say that it is a rule, from nothing on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grade {
    /// A question, a statement of the first person, or a request for this one time.
    Never,
    Plain,
    /// "Your response must contain one block": a rule below a heading such as "Rules".
    Modal,
    /// "Run the tests": a rule in a list below a heading such as "Rules".
    Imperative,
    /// "Do not add packages": a rule in a message that also has a strong one.
    Weak,
    /// "Important: do not add packages": a rule in any message, which says nothing about its other sentences.
    Labelled,
    /// "Never add packages": a rule in any message.
    Strong,
}

/// Maximum words of a label before a colon: "Important note:".
const LABEL: usize = 5;

/// Returns the grade of a sentence that is no question.
pub(super) fn grade(words: &Words) -> Grade {
    let clauses = Clauses { words, cues: Cues::embedded().matches(words) };
    let is_one_off = clauses.cues.has_after(0, Kind::OneOff);
    if is_one_off || clauses.is_first_person(clauses.skip_fillers(0)) {
        return Grade::Never;
    }
    if clauses.is_anywhere() {
        return Grade::Strong;
    }
    let whole = clauses.grade(0, true);
    let colon = (1..=LABEL).find(|at| words.word(*at) == COLON);
    let labelled = colon.map_or(Grade::Plain, |colon| clauses.grade_labelled(colon));
    let modal = if clauses.cues.has_after(0, Kind::Modals) { Grade::Modal } else { Grade::Plain };
    whole.max(labelled).max(modal)
}

/// The clauses of a sentence.
struct Clauses<'a> {
    words: &'a Words,
    cues: Matches,
}

impl Clauses<'_> {
    /// Returns the place after words that say nothing about the grade: "and please".
    fn skip_fillers(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(end) = self.cues.end(at, Kind::Fillers) {
            // "Remember to always ..." is a cue as a whole.
            let kinds = [Kind::Starts, Kind::Requests, Kind::Prohibitions];
            if self.cues.at(at).any(|cue| cue.end > end && kinds.contains(&cue.kind)) {
                break;
            }
            at = self.skip_comma(end);
        }
        at
    }

    fn skip_comma(&self, at: usize) -> usize {
        at + usize::from(self.words.word(at) == COMMA)
    }

    fn is_first_person(&self, at: usize) -> bool {
        let has = |kind: Kind| self.cues.is_at(at, kind);
        has(Kind::FirstPerson) && !has(Kind::Starts) && !has(Kind::Anywhere)
    }

    /// Checks if a phrase makes the sentence a rule, unless the first person goes on: "from now on I will".
    fn is_anywhere(&self) -> bool {
        self.cues.each_of_kind(Kind::Anywhere).any(|cue| {
            let end = self.cues.end(cue.start, Kind::Anywhere).unwrap_or(cue.end);
            let next = self.skip_comma(end);
            !self.is_first_person(next) && !self.is_report(&Match { end: next, ..*cue })
        })
    }

    /// Checks if a report follows a cue: "always fails", "never had".
    fn is_report(&self, cue: &Match) -> bool {
        (cue.has_endings && Cues::embedded().is_report(self.words.word(cue.end)))
            || self.cues.is_at(cue.end, Kind::Reports)
    }

    /// Returns the grade of the clause that begins at a word.
    fn grade(&self, from: usize, is_first: bool) -> Grade {
        let at = self.skip_fillers(from);
        let grades = self.cues.at(at).map(|cue| match cue.kind {
            Kind::Starts if !self.is_first_person(cue.end) && !self.is_report(cue) => Grade::Strong,
            Kind::Prohibitions if self.cues.has_after(cue.end, Kind::Exceptions) => Grade::Strong,
            Kind::Prohibitions | Kind::Requests | Kind::Imperatives if self.is_lasting(cue.end) => {
                Grade::Strong
            }
            Kind::Prohibitions | Kind::Requests => Grade::Weak,
            Kind::Imperatives => Grade::Imperative,
            Kind::Conditions if is_first => self.grade_case(at),
            _ => Grade::Plain,
        });
        grades.max().unwrap_or(Grade::Plain)
    }

    /// Returns the grade of a sentence that begins with a condition: "When you edit a file, keep ...".
    fn grade_case(&self, from: usize) -> Grade {
        match self.best_clause(from) {
            Grade::Weak | Grade::Imperative if self.cues.is_at(from, Kind::Cases) => Grade::Strong,
            Grade::Weak | Grade::Imperative => Grade::Weak,
            other => other,
        }
    }

    /// Returns the best grade of the clauses after commas.
    fn best_clause(&self, from: usize) -> Grade {
        let commas = (from..self.words.len()).filter(|at| self.words.word(*at) == COMMA);
        let clauses = commas.map(|at| at + 1).take_while(|at| !self.is_first_person(*at));
        clauses.map(|at| self.grade(at, false)).max().unwrap_or(Grade::Plain)
    }

    /// Returns the grade of a sentence after a label. One such as "Important:" raises it.
    fn grade_labelled(&self, colon: usize) -> Grade {
        let first = self.grade(colon + 1, true);
        let is_important = self.cues.each_of_kind(Kind::Labels).any(|cue| cue.start < colon);
        match first {
            Grade::Imperative | Grade::Weak if is_important => Grade::Labelled,
            Grade::Plain if is_important && self.cues.has_after(colon, Kind::Modals) => Grade::Labelled,
            Grade::Plain => self.best_clause(colon).min(Grade::Imperative),
            other => other,
        }
    }

    /// Checks if a word after the verb says that the clause holds for all time: "every time", "immer".
    fn is_lasting(&self, from: usize) -> bool {
        let comma = (from..self.words.len()).find(|at| self.words.word(*at) == COMMA);
        let end = comma.unwrap_or(self.words.len());
        let clause = self.cues.from(from).iter().take_while(|cue| cue.start < end);
        let mut clause = clause.take_while(|cue| cue.kind != Kind::Relatives);
        clause.any(|cue| cue.kind == Kind::Lasting)
    }
}
