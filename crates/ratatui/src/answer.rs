//! The actions that a user can take on a notice, and their effects.

use context_window::{
    ContextPlan, Conversation, Error, ItemId, Priority, Ttl,
    plan::{Decision, Notice, NoticeCode},
};
use context_window_report as report;

/// An action that a user can take on a notice. The widget only names it; [`NoticeAction::apply`] performs it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoticeAction {
    /// Pin the item again, without a TTL or with this one: `Conversation::pin_message` for a message,
    /// `Conversation::pin` for a note, `Conversation::set_ttl` where there is a TTL.
    RePin {
        /// The message or note.
        id: ItemId,
        /// The priority among pins.
        priority: Priority,
        /// Its TTL; [`Ttl::Unlimited`] makes it required.
        ttl: Option<Ttl>,
    },
    /// Let the item live for some turns more: `Conversation::set_ttl`.
    Keep {
        /// The message or note.
        id: ItemId,
        /// Completed turns, 1 or more.
        turns: u32,
    },
    /// Leave the item out from now on: `Conversation::unpin`, and an expired message is not asked about
    /// again.
    Drop {
        /// The message or note.
        id: ItemId,
    },
}

impl NoticeAction {
    /// Returns the actions for a notice of this plan, in the order in which they are shown: for an expired
    /// item ([`NoticeCode::TtlQuestion`]) re-pin, keep and drop; for a pin that does not fit
    /// ([`NoticeCode::PinDropped`]) re-pin before other pins, re-pin as required, and drop. The tokens that
    /// the pin needs are in the notice's text. Other notices have no actions.
    ///
    /// `turns` is how many turns "keep" means.
    #[must_use]
    pub fn for_notice(plan: &ContextPlan, notice: &Notice, turns: u32) -> Vec<Self> {
        let turns = turns.max(1);
        let priority = |id: &ItemId| match plan.find(&format!("item:{id}")).or_else(|| plan.find(id.as_str()))
        {
            Some(Decision::Included(item)) => item.priority,
            Some(Decision::Excluded(item)) => item.priority.unwrap_or_default(),
            None => Priority::default(),
        };
        let of_one = |id: &ItemId| -> Vec<Self> {
            let (id, priority) = (id.clone(), priority(id));
            let pin = |priority, ttl| Self::RePin { id: id.clone(), priority, ttl };
            match notice.code {
                NoticeCode::TtlQuestion => {
                    vec![pin(priority, None), Self::Keep { id: id.clone(), turns }, Self::Drop { id }]
                }
                NoticeCode::PinDropped => {
                    let first = (priority != Priority::High).then(|| pin(Priority::High, None));
                    let required = pin(Priority::High, Some(Ttl::Unlimited));
                    first.into_iter().chain([required, Self::Drop { id }]).collect()
                }
                _ => Vec::new(),
            }
        };
        notice.ids.iter().flat_map(of_one).collect()
    }

    /// Returns the item that it is about.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        match self {
            Self::RePin { id, .. } | Self::Keep { id, .. } | Self::Drop { id } => id,
        }
    }

    /// Returns its effect in a word or two.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::RePin { ttl: Some(Ttl::Unlimited), .. } => "re-pin as required".into(),
            Self::RePin { ttl: Some(ttl), .. } => format!("re-pin, {}", report::ttl(*ttl)),
            Self::RePin { priority: Priority::High, ttl: None, .. } => "re-pin, priority high".into(),
            Self::RePin { .. } => "re-pin".into(),
            Self::Keep { turns: 1, .. } => "keep 1 turn".into(),
            Self::Keep { turns, .. } => format!("keep {turns} turns"),
            Self::Drop { .. } => "drop".into(),
        }
    }

    /// Does it: changes the conversation, so that the next plan has it.
    ///
    /// ```
    /// use context_window::*;
    /// use context_window_ratatui::NoticeAction;
    ///
    /// # let mut model = Model::custom("small");
    /// # model.tokenizer = Some("chars/4".into());
    /// # let mut config = Config::default();
    /// # config.ttl_policy = config::TtlPolicy::Ask;
    /// # let manager = ContextWindowManager::configured(model, config)?;
    /// let mut log = Conversation::from([Message::user("Hi!")]);
    /// log.pin(PinnedItem::new("voucher", "Ida has a voucher.").with_ttl(Ttl::turns(0)));
    /// let plan = manager.build_plan(&PlanRequest::new(&log))?;
    /// let actions = NoticeAction::for_notice(&plan, &plan.notices[0], 3);
    /// let labels: Vec<String> = actions.iter().map(NoticeAction::label).collect();
    /// assert_eq!(labels, ["re-pin", "keep 3 turns", "drop"]);
    /// actions[1].apply(&mut log)?;
    /// let plan = manager.build_plan(&PlanRequest::new(&log))?;
    /// assert!(plan.notices.is_empty() && plan.find("voucher").is_some());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `context_window::ErrorKind::NotFound` where the conversation has no such message or note.
    pub fn apply(&self, log: &mut Conversation) -> Result<(), Error> {
        let note = |id: &ItemId, log: &Conversation| log.notes().find(|note| note.id() == id).cloned();
        match self {
            Self::RePin { id, priority, ttl } => {
                match note(id, log) {
                    // Pinned without a TTL: the one that ran out is forgotten.
                    Some(mut item) => {
                        item.ttl = *ttl;
                        log.pin(item.with_priority(*priority));
                    }
                    None => {
                        log.pin_message(id, *priority)?;
                        if let Some(ttl) = ttl {
                            log.set_ttl(id, *ttl)?;
                        }
                    }
                }
                Ok(())
            }
            Self::Keep { id, turns } => log.set_ttl(id, Ttl::turns(*turns)),
            Self::Drop { id } => {
                log.unpin(id);
                // An expired message that nobody pins would be asked about once more.
                match log.lifetime(id) {
                    Some(left) if left.left == Ttl::NoneRemaining => {
                        log.restore_ttl(id.clone(), Ttl::NoneRemaining, true)
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}
