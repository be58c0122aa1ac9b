//! What the commands do.

use super::{Chat, Turn};
use crate::{
    command::{self, Line},
    models,
};
use anyhow::{Context, Result, anyhow, bail, ensure};
use context_window::{
    PinnedItem, Priority, Ttl, Usage,
    analysis::Diff,
    config::ReasoningPolicy,
    conversation::HistoryRow,
    io::{SessionTexts, save_whole},
    report::{self, grouped},
    store::ListOptions,
    usage::CostTerms,
    widgets::{BannerAction, NoticeAction},
};

impl Chat {
    /// Does what a line asks for; false where the chat is to end.
    pub fn enter(&mut self, line: &str) -> bool {
        self.preview = None;
        match command::read(line) {
            None => {}
            Some(Line::Question(question)) => self.ask(&question),
            Some(Line::Unknown(error)) => self.fail(error),
            Some(Line::Command("quit", _)) => return false,
            Some(Line::Command(name, rest)) => {
                if let Err(error) = self.perform(name, &rest) {
                    self.fail(format!("/{name}: {error:#}"));
                }
            }
        }
        true
    }

    fn perform(&mut self, name: &str, rest: &str) -> Result<()> {
        // A reply is planned from the history, so that does not change before it is there.
        let changes =
            matches!(name, "fresh" | "undo") || matches!(name, "model" | "sessions") && !rest.is_empty();
        ensure!(!changes || matches!(self.turn, Turn::Idle), "a reply is on its way; Ctrl-C stops it");
        if changes {
            self.stop_compacting();
        }
        match name {
            "pin" => self.pin(rest),
            "unpin" => self.unpin(rest),
            "ttl" => self.ttl(rest),
            "drop" => self.leave_out(rest),
            "undo" => self.undo(rest),
            "model" => self.model(rest),
            "explain" => self.explain(rest),
            "diff" => self.diff(),
            "save" => self.save_to(rest),
            "sessions" => self.sessions(rest),
            "compact" => Ok(self.preview_compaction()),
            "fresh" => Ok(self.start_fresh()),
            "retry" => Ok(self.retry()),
            "cost" => Ok(self.cost()),
            "files" => Ok(self.files()),
            _ => Ok(self.say(command::help())),
        }
    }

    /// Stops what is on its way: a reply, otherwise a compaction.
    pub fn interrupt(&mut self) {
        if matches!(self.turn, Turn::Idle) { self.stop_compacting() } else { self.stop() }
    }

    fn pin(&mut self, what: &str) -> Result<()> {
        ensure!(!what.is_empty(), "expected a text to pin, or the id of a message, such as m3");
        let is_it = |row| matches!(row, HistoryRow::Message { id, .. } if id.as_str() == what);
        if self.log.display().any(is_it) {
            self.log.pin_message(what, Priority::Normal)?;
            self.say(format!("{what} is pinned."));
        } else {
            // A note that is there already keeps its name, also one that was let go.
            let is_free = |id: &String| !self.pinned().contains(id) && self.log.ttl(id).is_none();
            let id = (1..).map(|number| format!("note-{number}")).find(is_free);
            let id = id.context("numbers do not end")?;
            self.log.pin(PinnedItem::new(id.as_str(), what));
            self.say(format!("{id} is pinned. /ttl 3 lets it stay for three turns."));
        }
        self.changed();
        Ok(())
    }

    /// The ids of pinned messages and notes, the newest note last.
    fn pinned(&self) -> Vec<String> {
        let messages = self.log.pins().map(|(id, _)| id.to_string());
        messages.chain(self.log.notes().map(|note| note.id().to_string())).collect()
    }

    fn unpin(&mut self, id: &str) -> Result<()> {
        if !self.log.unpin(id) {
            bail!("{id:?} is not pinned; pins: {}", self.pinned().join(", "));
        }
        self.say(format!("{id} is not pinned any more."));
        self.changed();
        Ok(())
    }

    fn ttl(&mut self, rest: &str) -> Result<()> {
        let mut words = rest.split_whitespace().rev();
        let turns: Option<u32> = words.next().and_then(|turns| turns.parse().ok());
        let turns = turns.context("expected a number of turns, as /ttl 3 or /ttl note-1 3")?;
        let id = words.next().map(str::to_owned).or_else(|| self.pinned().pop());
        let id = id.context("there are no pins; /pin TEXT makes one")?;
        self.log.set_ttl(id.as_str(), Ttl::turns(turns))?;
        self.say(format!("Turns that {id} stays: {turns}."));
        self.changed();
        Ok(())
    }

    fn leave_out(&mut self, id: &str) -> Result<()> {
        if !self.documents.iter().any(|document| document.id().as_str() == id) {
            let hint = "it is no document of the prompt; messages leave by /compact, or by /undo ID";
            return self.unpin(id).context(hint);
        }
        self.left_out = std::mem::take(&mut self.left_out).with_excluded(id, true);
        self.say(format!("{id} is left out from now on."));
        self.changed();
        Ok(())
    }

    fn start_fresh(&mut self) {
        self.log.start_fresh();
        self.documents.clear();
        self.say(
            "What was said so far is archived: it is shown, and not sent any more. /undo takes that back.",
        );
        self.changed();
    }

    fn undo(&mut self, id: &str) -> Result<()> {
        if id.is_empty() {
            let number = self.log.undo_compaction();
            let number = number
                .context("nothing is archived by a compaction; /undo ID goes back to before a message")?;
            self.say(format!("Compaction {number} is taken back."));
        } else {
            self.log.rewind_before(id)?;
            self.documents.clear();
            self.say(format!("The conversation goes on from before {id}."));
        }
        self.changed();
        Ok(())
    }

    fn model(&mut self, name: &str) -> Result<()> {
        if !name.is_empty() {
            let choice = models::choose(Some(name), self.args.effort.as_deref(), &self.environment)?;
            self.manager = super::manager(&self.args, &choice, ReasoningPolicy::default())?;
            self.choice = choice;
            self.changed();
        }
        let plan = &self.plan;
        let (window, total) = (grouped(plan.limits.context_len), report::tokens(plan.total));
        let says = format!(
            "{}. Window {window}, prompt {total} of {} tokens.",
            self.choice.says,
            grouped(plan.prompt_budget)
        );
        self.say(says);
        self.watch();
        Ok(())
    }

    fn explain(&mut self, id: &str) -> Result<()> {
        ensure!(!id.is_empty(), "expected the id of an item of the prompt, such as m3 or note-1");
        let explanation = self.manager.explainer(&self.request()).explain(id)?;
        self.say(report::explanation(&explanation).to_string());
        Ok(())
    }

    fn diff(&mut self) -> Result<()> {
        let [before, after] = self.sent.as_slice() else {
            bail!("fewer than two prompts were sent in this run")
        };
        let (first, second) = (before.request(&self.args), after.request(&self.args));
        let diff = Diff::between(&before.manager.explainer(&first), &after.manager.explainer(&second))?;
        let mut lines = diff.changes.iter().map(|change| {
            let [item, before, after, cause, _] = report::change(change);
            format!("{item}: {before} -> {after} ({cause})")
        });
        let mut text = lines.by_ref().collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            text = "The last two prompts hold the same.".into();
        }
        if let Some(same) = after.manager.build_plan(&second)?.repeated() {
            text += &format!(
                "\n{} of {} tokens stood in the prompt before.",
                grouped(same.tokens),
                grouped(same.of)
            );
        }
        self.say(text);
        Ok(())
    }

    fn cost(&mut self) {
        let (billed, plan, model) = (self.log.billed(), &self.plan, &self.choice.model);
        let read = grouped(billed.cache_read);
        let input = grouped(billed.input + billed.cache_read + billed.cache_write);
        let mut text = format!(
            "Billed so far: {input} tokens in, {read} of them read from a cache; {} out.",
            grouped(billed.output)
        );
        text += &format!(
            " This run: {}. The next prompt: {} tokens",
            report::dollars(self.spent),
            grouped(plan.total.n)
        );
        let repeated =
            self.log.anchor().and_then(|anchor| plan.prefix(anchor)).map_or(0, |prefix| prefix.tokens);
        text += &match model.input_cost(plan.total.n, repeated, CostTerms::default()) {
            Some(cost) => format!(
                ", {}; {} without a cache.",
                report::dollars(cost.billionths),
                report::dollars(cost.uncached)
            ),
            None => format!("; {} has no price.", model.name),
        };
        self.say(text);
    }

    /// Adds what a reply cost, where its model has a price.
    pub(super) fn spend(&mut self, usage: Usage) {
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        let Some(rates) = self.choice.model.price.as_ref().map(|price| price.rates(prompt, None)) else {
            return;
        };
        let input = usage.input * rates.input
            + usage.cache_read * rates.cache_read
            + usage.cache_write * rates.cache_write;
        self.spent += (input + usage.output * rates.output) / 1_000;
    }

    fn files(&mut self) {
        let done = &self.indexed;
        let mut text =
            format!("{} files in {} chunks, from {}.", done.files, done.chunks, self.args.folder.display());
        for (path, why) in &done.unreadable {
            text += &format!("\nnot read: {path}: {why}");
        }
        self.say(text);
    }

    fn save_to(&mut self, file: &str) -> Result<()> {
        ensure!(
            !file.is_empty(),
            "expected a file for a copy, such as /save chat.json; the chat itself is always saved"
        );
        let json = self.manager.session_json(&self.request(), SessionTexts::Kept)?;
        save_whole(file, json.as_bytes()).with_context(|| file.to_owned())?;
        self.say(format!("Written. `plan-inspect {file}` shows the plan."));
        Ok(())
    }

    fn sessions(&mut self, name: &str) -> Result<()> {
        if name.is_empty() {
            let mut text = "Sessions of this folder; /sessions NAME goes to one or begins it.".to_owned();
            for one in self.saved.store.list(&ListOptions::new().with_limit(50))? {
                let here = if one.id == self.saved.id { "*" } else { " " };
                let model = one.model.as_deref().unwrap_or("no reply yet");
                text += &format!(
                    "\n{here} {:<16} {:>4} messages, {model}, {}",
                    one.id, one.messages, one.updated
                );
            }
            self.say(text);
            return Ok(());
        }
        self.log = self.saved.switch(name)?;
        self.documents.clear();
        self.sent.clear();
        self.notes.clear();
        self.replan();
        self.welcome();
        Ok(())
    }

    /// What the user chose of a notice: about an expired pin, or one that does not fit.
    pub fn answer(&mut self, action: &NoticeAction) {
        match action.apply(&mut self.log).map_err(|error| anyhow!(error)) {
            Ok(()) => self.say(format!("{}: {}.", action.id(), action.label())),
            Err(error) => self.fail(error.to_string()),
        }
        self.changed();
    }

    /// What the user chose when the window is nearly full.
    pub fn make_room(&mut self, action: BannerAction) {
        self.enter(if action == BannerAction::StartFresh { "/fresh" } else { "/compact" });
    }
}
