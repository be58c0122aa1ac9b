//! The evaluation of policies on one session after another.

use crate::{
    application::Application,
    baseline::{Baseline, Candidates, Selected},
    case::EvalCase,
    counted::{Counted, CountedMessages, ItemCounter},
    error::Error,
    needles::Needles,
    policy::{Policy, Rule},
    prompt::SentPrompt,
    question::Question,
    replay::{Replay, free_id},
    result::{CaseResult, CellResult, QuestionResult, TurnSums},
};
use context_window::{
    Config, ContextWindowManager, Conversation, ItemId, Message, Model, PlanRequest, RagItem, RequestLimits,
    RetrievedItems, Role, TokenCounter,
    conversation::Entry,
    usage::{CacheLife, CostTerms},
};
use context_window_recall::Recall;
use std::collections::BTreeMap;

/// An evaluation: policies and budgets, and the model whose prompts are planned.
///
/// Each budget is that of an application whose context window holds just this prompt and a reply of a quarter
/// of it, so that compactions are due as they would be there.
#[derive(Debug, Clone)]
pub struct Evaluation {
    model: Model,
    counter: TokenCounter,
    budgets: Vec<u64>,
    policies: Vec<Policy>,
    every: usize,
    needles: Option<Needles>,
    terms: Terms,
}

impl Evaluation {
    /// Creates an evaluation with the default policy at 4,096 tokens. Every tenth prompt of a session is
    /// planned, and no needles are planted.
    #[must_use]
    pub fn new(model: Model, counter: TokenCounter) -> Self {
        // Counts of whole sessions recur for each policy and budget.
        let counter = if counter.has_cache() { counter } else { counter.with_cache(64 << 20) };
        let policies = vec![Policy::planner("default", Config::default())];
        Self {
            model,
            counter,
            budgets: vec![4_096],
            policies,
            every: 10,
            needles: None,
            terms: Terms::default(),
        }
    }

    /// Sets the prompt budgets in tokens.
    #[must_use]
    pub fn with_budgets(mut self, budgets: impl IntoIterator<Item = u64>) -> Self {
        self.budgets = budgets.into_iter().collect();
        self
    }

    /// Sets the policies.
    #[must_use]
    pub fn with_policies(mut self, policies: impl IntoIterator<Item = Policy>) -> Self {
        self.policies = policies.into_iter().collect();
        self
    }

    /// Plans every `count`-th prompt of a session before its questions, and compacts when it is due. With 0,
    /// only the questions are planned, each as the first prompt of an application.
    #[must_use]
    pub fn with_every(mut self, count: usize) -> Self {
        self.every = count;
        self
    }

    /// Plants needles in each session that is long enough.
    #[must_use]
    pub fn with_needles(mut self, needles: Needles) -> Self {
        self.needles = Some(needles);
        self
    }

    /// Sets the terms of payment for the input of prompts.
    #[must_use]
    pub fn with_costs(mut self, terms: CostTerms<'_>) -> Self {
        self.terms = Terms { day: terms.day.map(str::to_owned), life: terms.life };
        self
    }

    /// Returns a text with all settings. Evaluations with equal texts give equal results.
    #[must_use]
    pub fn settings(&self) -> String {
        // No `..`: a new field would be missing in the text.
        let Self { model, counter, budgets, policies, every, needles, terms } = self;
        let counter = (counter.name(), counter.certainty());
        format!("{:?}", (model, counter, budgets, policies, every, needles, terms))
    }

    /// Plans the prompt of each question of a session, for each policy at each budget, and looks for the
    /// evidence in it. Equal inputs give equal results.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Plan` if a prompt cannot be planned, or if the options of a policy are invalid.
    pub fn evaluate(&self, case: &EvalCase) -> Result<CaseResult, Error> {
        // Baselines share the counts of single messages, which do not depend on policy or budget.
        let mut counted = None;
        let mut cells = Vec::new();
        for policy in &self.policies {
            for budget in &self.budgets {
                let cell = match &policy.rule {
                    Rule::Planner { config, recalls } => self.planner(config, *recalls, *budget, case)?,
                    Rule::Baseline(baseline) => {
                        let counted = match &mut counted {
                            Some(counted) => counted,
                            none => none.insert(CountedCase::new(self, case)?),
                        };
                        self.baseline(*baseline, *budget, case, counted)
                    }
                };
                cells.push(CellResult {
                    policy: policy.name.clone(),
                    is_baseline: policy.is_baseline(),
                    budget: *budget,
                    ..cell
                });
            }
        }
        Ok(CaseResult { session: case.id().to_owned(), cells })
    }

    /// Returns the results of options of the planner.
    fn planner(
        &self,
        config: &Config,
        recalls: bool,
        budget: u64,
        case: &EvalCase,
    ) -> Result<CellResult, Error> {
        let manager = ContextWindowManager::new(self.model.clone(), self.counter.clone(), config.clone())
            .map_err(|error| Error::plan("the policy", error))?;
        let session = case.session();
        let application = Application {
            manager: &manager,
            model: &self.model,
            limits: limits(budget),
            tools: &session.tools,
            every: self.every,
            terms: self.terms.as_cost_terms(),
        };
        let mut asker = Asker { application: &application, case, recall: recalls.then(Recall::new) };
        let (mut cell, mut replay) = (CellResult::empty(), Replay::default());
        for entry in session.log.entries() {
            match entry {
                Entry::Event(event) => replay.log.record(event.clone()),
                Entry::Message(message) => {
                    // Asked before the next message: the log is append-only, so later messages could not be
                    // taken away again.
                    asker.ask_due_questions(&replay.log, &mut cell)?;
                    replay.push(message, &application)?;
                }
            }
        }
        asker.ask_due_questions(&replay.log, &mut cell)?;
        // Questions were asked in the order of their places. Results have the order of the session.
        cell.questions.sort_by_key(|result| result.question);
        cell.turns.add(&replay.sums);
        if let Some(needles) = self.needles {
            cell.needles = needles.results(&session.log, &application)?;
        }
        Ok(cell)
    }

    /// Returns the results of a baseline.
    fn baseline(
        &self,
        baseline: Baseline,
        budget: u64,
        case: &EvalCase,
        counted: &CountedCase,
    ) -> CellResult {
        let mut cell = CellResult::empty();
        for (at, question) in case.questions().iter().enumerate() {
            let messages =
                &counted.list.messages[..question.messages_before - usize::from(question.is_in_session)];
            let candidates = Candidates {
                messages,
                question: &counted.questions[at],
                documents: &counted.documents,
                evidence: counted.evidence(question),
                budget,
                overhead: counted.list.overhead,
            };
            let sent = SentPrompt::from_selected(&baseline.select(&candidates), budget);
            cell.questions.push(sent.result(at, question, self.uncached_cost(sent.tokens())));
        }
        // The evidence of a question is unknown before it is asked, so the oracle has no turns.
        if baseline != Baseline::Oracle {
            cell.turns = self.baseline_turns(baseline, budget, case, counted);
        }
        cell
    }

    /// Returns the cost of a prompt's input without a cache, in billionths of a US dollar.
    fn uncached_cost(&self, tokens: u64) -> Option<u64> {
        self.model.input_cost(tokens, 0, self.terms.as_cost_terms()).map(|cost| cost.uncached)
    }

    /// Returns the cost of a prompt's input in billionths of a US dollar.
    fn cost(&self, tokens: u64, kept: u64) -> Option<u64> {
        self.model.input_cost(tokens, kept, self.terms.as_cost_terms()).map(|cost| cost.billionths)
    }

    /// Returns the sums over every k-th prompt of a session, as a baseline selects them.
    fn baseline_turns(
        &self,
        baseline: Baseline,
        budget: u64,
        case: &EvalCase,
        counted: &CountedCase,
    ) -> TurnSums {
        let mut sums = TurnSums::default();
        if self.every == 0 {
            return sums;
        }
        let messages = case.session().log.messages().iter().enumerate().skip(1);
        let replies = messages.filter(|(_, message)| message.role() == Role::Assistant);
        let mut last: Vec<&Counted> = Vec::new();
        for (before, _) in replies.skip(self.every - 1).step_by(self.every) {
            // The newest message is required, as the live question is for the planner. In an agent's turn
            // it is a tool result.
            let Some((question, messages)) = counted.list.messages[..before].split_last() else { continue };
            let overhead = counted.list.overhead;
            let candidates =
                Candidates { messages, question, documents: &[], evidence: Vec::new(), budget, overhead };
            let Selected { items, tokens } = baseline.select(&candidates);
            // A provider's cache serves a prompt up to the first difference.
            let same = last.iter().zip(&items).take_while(|(old, new)| old.id == new.id);
            let same: u64 = same.map(|(_, new)| new.tokens).sum();
            let is_first = last.is_empty();
            let fixed = if is_first { 0 } else { counted.list.fixed };
            let kept = fixed + same;
            sums.add(&TurnSums {
                prompts: 1,
                tokens,
                budget,
                overflows: u64::from(tokens > budget),
                kept,
                before: fixed + last.iter().map(|item| item.tokens).sum::<u64>(),
                after: if is_first { 0 } else { tokens },
                cost: self.cost(tokens, kept),
                compactions: 0,
            });
            last = items;
        }
        sums
    }
}

/// Owned terms of payment.
#[derive(Debug, Clone, Default)]
struct Terms {
    day: Option<String>,
    life: CacheLife,
}

impl Terms {
    fn as_cost_terms(&self) -> CostTerms<'_> {
        CostTerms::default().with_day(self.day.as_deref()).with_life(self.life)
    }
}

/// Returns the limits of an application with this prompt budget.
fn limits(budget: u64) -> RequestLimits {
    // Limits, not a bare budget: compactions are due by the size of the context window.
    let reply = (budget / 4).max(1);
    let mut limits = RequestLimits::new().with_model_context_len(budget.saturating_add(reply));
    limits.max_completion_tokens = Some(reply);
    limits.safety_buffer = Some(0);
    limits
}

impl CellResult {
    fn empty() -> Self {
        Self {
            policy: String::new(),
            is_baseline: false,
            budget: 0,
            questions: Vec::new(),
            turns: TurnSums::default(),
            needles: Vec::new(),
        }
    }
}

/// The questions of a session, asked in an application.
struct Asker<'a> {
    application: &'a Application<'a>,
    case: &'a EvalCase,
    recall: Option<Recall>,
}

impl Asker<'_> {
    /// Asks the questions whose place is the end of the log.
    fn ask_due_questions(&mut self, log: &Conversation, cell: &mut CellResult) -> Result<(), Error> {
        let messages = log.messages().len();
        let questions = self.case.questions().iter().enumerate();
        if let Some(recall) = &mut self.recall {
            recall.update(log);
        }
        for (at, question) in questions.filter(|(_, question)| question.messages_before == messages) {
            cell.questions.push(self.ask(at, question, log)?);
        }
        Ok(())
    }

    /// Returns the result of one question, asked after the messages of the log.
    fn ask(&self, at: usize, question: &Question, log: &Conversation) -> Result<QuestionResult, Error> {
        // A question changes nothing for the next one.
        let mut log = log.clone();
        if !question.is_in_session {
            log.push(Message::user(question.text.clone()).with_id(free_id(&log, "question")));
        }
        let mut request = self.request(&log).with_retrieved(self.case.session().rag.clone());
        if let Some(recall) = &self.recall {
            request = recall.clone().for_request(request);
        }
        let place = || format!("session `{}`, questions[{at}]", self.case.id());
        let plan =
            self.application.manager.build_plan(&request).map_err(|error| Error::plan(place(), error))?;
        let sent = SentPrompt::from_plan(&plan, &request.rag);
        Ok(sent.result(at, question, self.application.uncached_cost(sent.tokens())))
    }

    /// Returns the request with the inputs of the session.
    fn request<'l>(&'l self, log: &'l Conversation) -> PlanRequest<'l> {
        let session = self.case.session();
        let mut request = self.application.request(log);
        for (id, text) in &session.state {
            request = request.with_state(id.clone(), text.clone());
        }
        match &session.focus {
            Some(focus) => request.with_focus(focus.clone()),
            None => request,
        }
    }
}

/// The token counts of a session's messages, documents and questions, for baselines.
struct CountedCase {
    list: CountedMessages,
    questions: Vec<Counted>,
    documents: Vec<Counted>,
}

impl CountedCase {
    fn new(evaluation: &Evaluation, case: &EvalCase) -> Result<Self, Error> {
        let counter = ItemCounter::new(evaluation.model.clone(), evaluation.counter.clone())?;
        let session = case.session();
        let mut questions = Vec::new();
        for question in case.questions() {
            let log = Conversation::from([Message::user(question.text.clone())]);
            // Alone in a conversation, because the tokens of a message do not depend on its neighbours.
            questions.extend(counter.messages(&log, &[])?.messages);
        }
        let list = counter.messages(&session.log, &session.tools)?;
        Ok(Self { list, questions, documents: counter.documents(&best_first(&session.rag))? })
    }

    /// Returns the evidence of a question, counted.
    fn evidence(&self, question: &Question) -> Vec<&Counted> {
        let all = || self.list.messages.iter().chain(&self.documents);
        let counted = |id: &context_window::ItemId| all().find(|item| item.id == *id);
        question.evidence().filter_map(counted).collect()
    }
}

/// Returns the documents, best first: by score, or in the order of reciprocal rank fusion (Cormack and others
/// 2009, k = 60) if there are several lists.
fn best_first(documents: &RetrievedItems) -> Vec<RagItem> {
    let by_score = |list: &mut [RagItem]| list.sort_by(|a, b| b.score().total_cmp(&a.score()));
    let mut ranked = documents.to_vec();
    if documents.list_names().count() < 2 {
        // Stable, so that documents of equal scores keep the retriever's order.
        by_score(&mut ranked);
        return ranked;
    }
    // In whole numbers, so that every machine ranks alike.
    let mut values: BTreeMap<(ItemId, String), u64> = BTreeMap::new();
    let key = |item: &RagItem| (item.id().clone(), item.text().to_owned());
    for (_, mut list) in documents.lists() {
        by_score(&mut list);
        for (item, rank) in list.iter().zip(1u64..) {
            *values.entry(key(item)).or_default() += (1 << 40) / (60 + rank);
        }
    }
    ranked.sort_by_cached_key(|item| std::cmp::Reverse(values.get(&key(item)).copied()));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_fused_by_rank_and_one_list_is_sorted_by_score() {
        let item = |(id, score): &(&str, f64)| RagItem::new(*id, *score, *id);
        let list = |rows: &[(&str, f64)]| rows.iter().map(item).collect::<Vec<_>>();
        let ids = |items: &RetrievedItems| {
            best_first(items).iter().map(|item| item.id().to_string()).collect::<Vec<_>>()
        };
        let words = RetrievedItems::from(list(&[("a", 1.0), ("b", 9.0), ("c", 9.0), ("d", 0.5)]));
        assert_eq!(ids(&words), ["b", "c", "a", "d"]);
        let both = words.with_list("meaning", list(&[("d", 0.9), ("a", 0.8)]));
        assert_eq!(ids(&both), ["d", "a", "b", "c"]);
    }
}
