//! Needles: facts and instructions that are added to a session, to see if they survive compactions.

use crate::{
    application::Application,
    error::Error,
    needle::{NeedleKind, NeedlePlace},
    replay::free_id,
    result::NeedleResult,
};
use context_window::{Conversation, Message, Role, ToolCall};

/// The needles of an evaluation. Equal seeds give equal needles.
///
/// Every kind is planted at every place of the messages before the first compaction. The compactions are made
/// without a model, or with summaries of a model that forgets all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needles {
    seed: u64,
    is_summarized: bool,
}

/// A session has at least this many messages for each part between two compactions.
const PART: usize = 6;

/// A summary that has forgotten everything.
const SUMMARY: &str = "The user and the assistant worked on several things.";

/// One needle: its sentence, and the turn that brings it into the session.
struct Needle {
    kind: NeedleKind,
    place: NeedlePlace,
    sentence: String,
    turn: Vec<Message>,
}

impl Needles {
    /// The numbers of compactions after which the prompt is examined.
    pub const COMPACTIONS: [u64; 3] = [1, 2, 5];

    /// Creates needles from a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { seed, is_summarized: false }
    }

    /// Compacts with summaries that contain nothing of the conversation, instead of digests.
    #[must_use]
    pub fn with_empty_summaries(self) -> Self {
        Self { is_summarized: true, ..self }
    }

    /// Plants the needles in a session and returns their survival. Returns no results for a session that is
    /// too short for its compactions.
    pub(crate) fn results(
        self,
        session: &Conversation,
        application: &Application<'_>,
    ) -> Result<Vec<NeedleResult>, Error> {
        let mut results = Vec::new();
        for compactions in Self::COMPACTIONS {
            results.extend(self.survival(session.messages(), compactions as usize, application)?);
        }
        Ok(results)
    }

    /// Returns the survival of each needle after a number of compactions.
    fn survival(
        self,
        messages: &[Message],
        compactions: usize,
        application: &Application<'_>,
    ) -> Result<Vec<NeedleResult>, Error> {
        let system = messages.iter().take_while(|message| message.role() == Role::System).count();
        let turns = &messages[system..];
        let part = turns.len() / (compactions + 1);
        // A compaction of a shorter part would have nothing to archive.
        if part < PART {
            return Ok(Vec::new());
        }
        let needles = self.needles();
        let mut log = Conversation::default();
        // No prompt is planned before the last one: compactions are made at fixed places here, so that each
        // needle passes the same number of them.
        let add = |log: &mut Conversation, messages: &[Message]| {
            for message in messages {
                log.push(message.clone());
            }
        };
        let plant = |log: &mut Conversation, place| {
            let planted = needles.iter().filter(|needle| needle.place == place);
            planted.flat_map(|needle| &needle.turn).for_each(|message| {
                let id = free_id(log, "needle");
                log.push(message.clone().with_id(id));
            });
        };
        add(&mut log, &messages[..system]);
        // Parts end before user messages: a compaction archives whole turns.
        let mut ends = (1..=compactions).map(|nth| turn_start(turns, nth * part));
        let first = ends.next().unwrap_or(turns.len());
        let middle = turn_start(&turns[..first], first / 2);
        plant(&mut log, NeedlePlace::First);
        add(&mut log, &turns[..middle]);
        plant(&mut log, NeedlePlace::Middle);
        add(&mut log, &turns[middle..first]);
        plant(&mut log, NeedlePlace::Last);
        let mut begin = first;
        let compact = |log: &mut Conversation| {
            if self.is_summarized {
                application.compact_by_summary(log, SUMMARY)
            } else {
                application.compact_now(log)
            }
        };
        let mut made = usize::from(compact(&mut log)?);
        for end in ends {
            add(&mut log, &turns[begin..end]);
            made += usize::from(compact(&mut log)?);
            begin = end;
        }
        add(&mut log, &turns[begin..]);
        // Needles that passed fewer compactions would count as survivors of all of them.
        if made < compactions {
            return Ok(Vec::new());
        }
        let id = free_id(&log, "question");
        log.push(Message::user("Please go on.").with_id(id));
        let plan = application.manager.build_plan(&application.request(&log));
        let plan = plan.map_err(|error| Error::plan("the prompt with needles", error))?;
        // Word by word: a paraphrase of a number or of an order is a loss.
        let survives = |sentence: &str| {
            plan.messages().iter().flat_map(Message::texts).any(|text| text.contains(sentence))
        };
        Ok(needles
            .iter()
            .map(|needle| NeedleResult {
                kind: needle.kind,
                place: needle.place,
                compactions: compactions as u64,
                survived: survives(&needle.sentence),
            })
            .collect())
    }

    /// Makes one needle of each kind for each place.
    fn needles(self) -> Vec<Needle> {
        let mut codes = Codes(self.seed);
        // Each needle has a code of its own. The same code at two places would hide a loss.
        let all = NeedlePlace::ALL.into_iter().flat_map(|place| NeedleKind::ALL.map(|kind| (place, kind)));
        all.map(|(place, kind)| Needle::new(kind, place, &codes.next_code())).collect()
    }
}

/// Returns the first user message at or after a position.
fn turn_start(messages: &[Message], position: usize) -> usize {
    let rest = messages.iter().skip(position);
    position + rest.take_while(|message| message.role() != Role::User).count()
}

impl Needle {
    fn new(kind: NeedleKind, place: NeedlePlace, code: &str) -> Self {
        let (sentence, turn) = match kind {
            NeedleKind::UserFact => {
                let sentence = format!("My locker at the station has the number {code}.");
                let turn =
                    vec![Message::user(sentence.clone()), Message::assistant("Thank you, I noted it.")];
                (sentence, turn)
            }
            NeedleKind::ReplyFact => {
                let sentence = format!("Your booking has the reference {code}.");
                let turn =
                    vec![Message::user("Please book the table."), Message::assistant(sentence.clone())];
                (sentence, turn)
            }
            NeedleKind::ToolFact => {
                let sentence = format!("The parcel has the tracking number {code}.");
                let call = ToolCall::new(format!("call-{code}"), "track_parcel", "{}");
                let turn = vec![
                    Message::user("Find my parcel."),
                    Message::assistant("").with_tool_calls([call]),
                    Message::tool(format!("call-{code}"), sentence.clone()),
                    Message::assistant("I found it. It arrives on Tuesday."),
                ];
                (sentence, turn)
            }
            NeedleKind::Instruction => {
                let sentence = format!("From now on, end every answer with the word {code}.");
                let turn =
                    vec![Message::user(sentence.clone()), Message::assistant(format!("I will. {code}"))];
                (sentence, turn)
            }
        };
        Self { kind, place, sentence, turn }
    }
}

/// Codes that look random: the generator `SplitMix64` (Steele and others 2014).
struct Codes(u64);

impl Codes {
    fn next_code(&mut self) -> String {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^= value >> 31;
        format!("{:04x}-{:04x}", value & 0xffff, (value >> 16) & 0xffff)
    }
}
