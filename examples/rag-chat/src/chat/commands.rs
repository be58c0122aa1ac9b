//! The commands of the chat.

use super::{Chat, Preview, Turn};
use crate::command::{self, Line};
use anyhow::{Context, Result, bail, ensure};
use context_window::analysis::Diff;
use context_window::conversation::HistoryRow;
use context_window::usage::CostTerms;
use context_window::{ItemId, PinnedItem, Priority, RagItem, RequestLimits, RetrievedItems, Ttl};
use context_window_formats::SessionTexts;
use context_window_ratatui::{BannerAction, NoticeAction};
use context_window_report as report;
use context_window_report::grouped;
use context_window_store::ListOptions;
use context_window_store::save_whole;
use std::path::Path;

/// The message of a command, or the reason why it did nothing.
type Said = Result<String>;

impl Chat {
    /// Runs a line of input. Returns false if the chat should end.
    pub fn enter(&mut self, line: &str) -> bool {
        if self.preview.is_some()
            && let answer @ ("y" | "yes" | "n" | "no") = line.trim().to_lowercase().as_str()
        {
            self.decide(answer.starts_with('y'));
            return true;
        }
        // A summary that was made waits until the user has reviewed it.
        self.preview.take_if(|preview| matches!(preview, Preview::Job(_)));
        match command::read(line) {
            None => {}
            Some(Line::Question(question)) => self.ask(&question),
            Some(Line::Unknown(error)) => self.fail(error),
            Some(Line::Command("quit", _)) => return false,
            Some(Line::Command("retry", _)) => self.retry(),
            Some(Line::Command(name, rest)) => match self.perform(name, &rest) {
                Ok(said) => self.say(said),
                Err(error) => self.fail(format!("/{name}: {error:#}")),
            },
        }
        true
    }

    fn perform(&mut self, name: &str, rest: &str) -> Said {
        // A reply is planned from the history, so the history does not change before the reply has arrived.
        let is_change =
            matches!(name, "fresh" | "undo") || matches!(name, "model" | "sessions") && !rest.is_empty();
        let waits = is_change || name == "compact";
        ensure!(!waits || matches!(self.turn, Turn::Idle), "a reply is pending; Ctrl-C stops it");
        let said = match name {
            "pin" => self.pin(rest),
            "unpin" => self.unpin(rest),
            "ttl" => self.ttl(rest),
            "drop" => self.leave_out(rest),
            "compact" => Ok(self.preview_compaction()),
            "fresh" => Ok(self.start_fresh()),
            "undo" => self.undo(rest),
            "model" => self.model(rest),
            "explain" => self.explain(rest),
            "diff" => self.diff(),
            "cost" => Ok(self.cost()),
            "save" => self.save_to(rest),
            "sessions" => self.sessions(rest),
            _ => Ok(command::help()),
        }?;
        if is_change {
            self.stop_compacting();
        }
        match name {
            // A session that was only viewed is not saved.
            "sessions" => self.replan(),
            _ => self.changed(),
        }
        if name == "model" {
            self.watch();
        }
        Ok(said)
    }

    /// Stops the running reply, otherwise the running compaction.
    pub fn interrupt(&mut self) {
        if matches!(self.turn, Turn::Idle) { self.stop_compacting() } else { self.stop() }
    }

    fn pin(&mut self, what: &str) -> Said {
        ensure!(!what.is_empty(), "expected a text to pin, or the id of a message, such as m3");
        let is_it = |row| matches!(row, HistoryRow::Message { id, .. } if id.as_str() == what);
        if self.log.history().any(is_it) {
            self.log.pin_message(what, Priority::Normal)?;
            return Ok(format!("{what} is pinned."));
        }
        // An existing note keeps its name, and so does an expired one.
        let is_free = |id: &String| !self.pinned().contains(id) && self.log.ttl(id).is_none();
        let id = (1..).map(|number| format!("note-{number}")).find(is_free).unwrap_or_default();
        self.log.pin(PinnedItem::new(id.as_str(), what));
        Ok(format!("{id} is pinned. /ttl 3 limits it to three turns."))
    }

    /// Returns the ids of pinned messages and notes, the newest note last.
    fn pinned(&self) -> Vec<String> {
        let messages = self.log.pins().map(|(id, _)| id.to_string());
        messages.chain(self.log.notes().map(|note| note.id().to_string())).collect()
    }

    fn unpin(&mut self, id: &str) -> Said {
        ensure!(self.log.unpin(id), "{id:?} is not pinned; pins: {}", self.pinned().join(", "));
        Ok(format!("{id} is no longer pinned."))
    }

    fn ttl(&mut self, rest: &str) -> Said {
        let mut words = rest.split_whitespace().rev();
        let turns: Option<u32> = words.next().and_then(|turns| turns.parse().ok());
        let turns = turns.context("expected a number of turns, as in /ttl 3 or /ttl note-1 3")?;
        let id = words.next().map(str::to_owned).or_else(|| self.pinned().pop());
        let id = id.context("there are no pins; /pin TEXT makes one")?;
        self.log.set_ttl(id.as_str(), Ttl::turns(turns))?;
        Ok(format!("Turns that {id} stays: {turns}."))
    }

    /// Returns the id of the only row of the plan with this ending, such as `pins.md#3`; otherwise the input.
    fn whole_id(&self, end: &str) -> String {
        let (included, excluded) = (self.plan.included.iter(), self.plan.excluded.iter());
        let ids = included.map(|item| &item.id).chain(excluded.map(|item| &item.id));
        let ids = ids.chain(self.left_out.excluded());
        let ids: Vec<_> = ids.filter(|id| id.as_str().ends_with(end)).collect();
        let is_whole = ids.iter().any(|id| id.as_str() == end);
        if ids.len() == 1 && !is_whole { ids[0].to_string() } else { end.to_owned() }
    }

    fn leave_out(&mut self, end: &str) -> Said {
        let id = &self.whole_id(end);
        let is_known = |document: &RagItem| document.id().as_str() == id.as_str();
        if !self.documents.iter().any(is_known)
            && !self.left_out.excluded().contains(&ItemId::from(id.as_str()))
        {
            let hint = "it is not a document of the prompt; /compact archives messages, /undo ID a message and all later ones";
            return self.unpin(id).context(hint);
        }
        Ok(match self.leave_document_out(id) {
            true => format!("{id} is excluded from now on."),
            false => format!("{id} is no longer excluded."),
        })
    }

    fn start_fresh(&mut self) -> String {
        self.log.start_fresh();
        self.documents = RetrievedItems::default();
        "All messages so far are archived: they are shown, but no longer sent. /undo reverts this.".into()
    }

    fn undo(&mut self, id: &str) -> Said {
        if id.is_empty() {
            let number = self.log.undo_compaction();
            let number = number.context(
                "there is no compaction or fresh start to revert; /undo ID archives a message and all later ones",
            )?;
            return Ok(format!("Compaction {number} is reverted."));
        }
        let instructs = |row| matches!(row, HistoryRow::Message { id: own, message, .. } if own == id && message.role().instructs());
        ensure!(
            !self.log.history().any(instructs),
            "{id} is an instruction for the model and cannot be removed"
        );
        self.log.rewind_before(id)?;
        self.documents = RetrievedItems::default();
        Ok(format!("The conversation continues from before {id}."))
    }

    fn model(&mut self, name: &str) -> Said {
        if !name.is_empty() {
            self.change_model(name)?;
            self.replan();
            self.remember_model(name);
        }
        let plan = &self.plan;
        let figures = [plan.limits.model_context_len, plan.estimated_tokens_total.tokens, plan.prompt_budget]
            .map(grouped);
        let [window, total, budget] = figures;
        let said = format!("{}. Window {window}, prompt {total} of {budget} tokens.", self.choice.says);
        Ok(said)
    }

    fn explain(&mut self, id: &str) -> Said {
        ensure!(!id.is_empty(), "expected the id of an item of the prompt, such as m3 or note-1");
        Ok(report::explanation(&self.manager.explainer(&self.request()).explain(&self.whole_id(id))?)
            .to_string())
    }

    fn diff(&mut self) -> Said {
        let [before, after] = self.sent.as_slice() else {
            bail!("fewer than two prompts were sent in this run")
        };
        let (first, second) = (before.request(&self.args), after.request(&self.args));
        let diff = Diff::between(&before.manager.explainer(&first), &after.manager.explainer(&second))?;
        let lines = diff.changes.iter().map(|change| {
            let report::ChangeText { item, before, after, cause, .. } = report::change(change);
            format!("{item}: {before} -> {after} ({cause})\n")
        });
        let mut said: String = lines.collect();
        let plan = after.manager.build_plan(&second)?;
        if let Some(same) = plan.repeated() {
            said += &format!(
                "The first {} of this prompt's {} tokens are equal to those of the previous prompt.",
                grouped(same.tokens.min(plan.estimated_tokens_total.tokens)),
                grouped(plan.estimated_tokens_total.tokens)
            );
        }
        Ok(said)
    }

    fn cost(&self) -> String {
        let (billed, plan, model) = (self.log.billed(), &self.plan, &self.choice.model);
        let input = billed.input + billed.cache_read + billed.cache_write;
        let [input, read, output, next] =
            [input, billed.cache_read, billed.output, plan.estimated_tokens_total.tokens].map(grouped);
        let repeated =
            self.log.anchor().and_then(|anchor| plan.prefix(anchor)).map_or(0, |prefix| prefix.tokens);
        let price = match model.input_cost(plan.estimated_tokens_total.tokens, repeated, CostTerms::default())
        {
            Some(cost) => {
                format!(
                    ", {}; {} without a cache",
                    report::dollars(cost.billionths),
                    report::dollars(cost.uncached)
                )
            }
            None => format!("; {} has no price", model.name),
        };
        let spent = report::dollars(self.spent);
        format!(
            "Billed so far: {input} tokens in, {read} of them read from a cache; {output} out. This run: {spent}. \
             The next prompt: {next} tokens{price}."
        )
    }

    fn save_to(&mut self, file: &str) -> Said {
        ensure!(
            !file.is_empty(),
            "expected a file for a copy, such as /save chat.json; the chat itself is always saved"
        );
        let limits = self.plan.limits;
        let limits = RequestLimits::new()
            .with_model_context_len(limits.model_context_len)
            .with_max_completion_tokens(limits.max_completion_tokens)
            .with_safety_buffer(limits.safety_buffer);
        let json = context_window_formats::session_json(
            &self.manager,
            &self.request().with_limits(limits),
            SessionTexts::Kept,
        )?;
        ensure!(!Path::new(file).exists(), "{file} exists already; expected a new file");
        save_whole(file, json.as_bytes()).with_context(|| file.to_owned())?;
        Ok(format!("Written. `cargo run --release -p plan-inspect -- {file}` shows its plan."))
    }

    fn sessions(&mut self, name: &str) -> Said {
        if name.is_empty() {
            let mut said = "Sessions of this folder; /sessions NAME opens or starts one.".to_owned();
            for one in self.saved.store.list(&ListOptions::new().with_limit(50))? {
                let here = if one.id == self.saved.id { "*" } else { " " };
                let model = one.model.as_deref().unwrap_or("no reply yet");
                let written = one.updated.get(..16).unwrap_or_default().replace('T', " ");
                said += &format!("\n{here} {}: {} messages, {model}, {written}", one.id, one.messages);
            }
            return Ok(said);
        }
        ensure!(
            !self.saved.is_behind,
            "the last messages of this session are not on disk; /retry, or /save FILE"
        );
        self.log = self.saved.switch(name)?;
        self.documents = RetrievedItems::default();
        self.sent.clear();
        self.remarks.clear();
        self.open_recall().into_iter().for_each(|said| self.say(said));
        self.resume_model();
        Ok(self.saved.welcome(&self.log))
    }

    /// Applies the user's action on a notice about an expired pin, or one that does not fit.
    pub fn answer(&mut self, action: &NoticeAction) {
        match action.apply(&mut self.log) {
            Ok(()) => self.say(format!("{}: {}.", action.id(), action.label())),
            Err(error) => self.fail(error.to_string()),
        }
        self.changed();
    }

    /// Applies the user's choice when the window is nearly full.
    pub fn make_room(&mut self, action: BannerAction) {
        self.enter(if action == BannerAction::StartFresh { "/fresh" } else { "/compact" });
    }
}
