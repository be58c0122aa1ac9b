//! The actions that a user can take on a notice, and their effects.

use context_window::{
    ContextPlan, Conversation, Error, ItemId, Priority, StandingRule, Ttl,
    plan::{Decision, Notice, NoticeCode},
};
use context_window_report as report;

/// An action that a user can take on a notice. The widgets only offer actions; [`NoticeAction::apply`]
/// performs them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoticeAction {
    /// A new pin with the TTL `ttl`, or without a TTL. Uses `Conversation::pin_message` for a message,
    /// `Conversation::pin` for a note, and `Conversation::set_ttl` if `ttl` is present.
    RePin {
        /// The id of the message or note.
        id: ItemId,
        /// The item's priority among pins.
        priority: Priority,
        /// The new TTL. [`Ttl::Unlimited`] makes the item required.
        ttl: Option<Ttl>,
    },
    /// A TTL of `turns` more turns (`Conversation::set_ttl`).
    Keep {
        /// The id of the message or note.
        id: ItemId,
        /// The number of completed turns, 1 or more.
        turns: u32,
    },
    /// The removal of the item's pin (`Conversation::unpin`). If the item is an expired message, later plans
    /// do not ask about it again.
    Drop {
        /// The id of the message or note.
        id: ItemId,
    },
    /// The confirmation of a rule of the user (`Conversation::keep_rule`).
    KeepRule {
        /// The rule.
        rule: StandingRule,
    },
    /// The removal of a rule of the user (`Conversation::drop_rule`).
    DropRule {
        /// The id of the rule.
        id: ItemId,
    },
}

impl NoticeAction {
    /// Returns the actions for a notice of this plan, in display order. Other notices than these have no
    /// actions:
    ///
    /// - For an expired item ([`NoticeCode::TtlQuestion`]): re-pin, keep, and drop.
    /// - For a pin that does not fit ([`NoticeCode::PinDropped`]): re-pin with high priority, re-pin as
    ///   required, and drop. The notice's text contains the tokens that the pin needs.
    /// - For a rule of the user to confirm ([`NoticeCode::RuleQuestion`]): keep, and drop. For one that does
    ///   not fit ([`NoticeCode::RuleDropped`]): drop.
    ///
    /// `turns` is the number of turns of the "keep" action; 0 counts as 1.
    #[must_use]
    pub fn for_notice(plan: &ContextPlan, notice: &Notice, turns: u32) -> Vec<Self> {
        let turns = turns.max(1);
        // The qualified id comes first: a document may share its id with a message or note (rule O5).
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
                    // A pin that already has high priority gets no action to raise it.
                    let first = (priority != Priority::High).then(|| pin(Priority::High, None));
                    let required = pin(Priority::High, Some(Ttl::Unlimited));
                    first.into_iter().chain([required, Self::Drop { id }]).collect()
                }
                NoticeCode::RuleQuestion => {
                    let rule = plan.rules().iter().find(|rule| *rule.id() == id).cloned();
                    let keep = rule.map(|rule| Self::KeepRule { rule });
                    keep.into_iter().chain([Self::DropRule { id }]).collect()
                }
                NoticeCode::RuleDropped => vec![Self::DropRule { id }],
                _ => Vec::new(),
            }
        };
        notice.ids.iter().flat_map(of_one).collect()
    }

    /// Returns the id of the item that the action changes.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        match self {
            Self::RePin { id, .. } | Self::Keep { id, .. } | Self::Drop { id } | Self::DropRule { id } => id,
            Self::KeepRule { rule } => rule.id(),
        }
    }

    /// Returns a label of a few words, such as `keep 3 turns`.
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
            Self::KeepRule { .. } => "keep rule".into(),
            Self::DropRule { .. } => "drop rule".into(),
        }
    }

    /// Performs the action on the conversation. The next plan includes the change.
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
    /// Returns `context_window::ErrorKind::NotFound` if the conversation has no message or note with this id.
    pub fn apply(&self, log: &mut Conversation) -> Result<(), Error> {
        let note = |id: &ItemId, log: &Conversation| log.notes().find(|note| note.id() == id).cloned();
        match self {
            Self::RePin { id, priority, ttl } => {
                match note(id, log) {
                    // The new pin replaces the expired TTL, also if `ttl` is `None`.
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
            Self::KeepRule { rule } => log.keep_rule(rule.clone()),
            Self::DropRule { id } => {
                log.drop_rule(id);
                Ok(())
            }
            Self::Drop { id } => {
                log.unpin(id);
                // Without this mark, the next plan would ask once more about an expired message that has no
                // pin.
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
