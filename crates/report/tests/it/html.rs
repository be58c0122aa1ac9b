//! The page of a plan: it is complete, no session text becomes markup, and no text remains in a redacted
//! page.

use crate::support::page::{is_sound, unescaped};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, Part, PinnedItem, PlanRequest,
    RagItem, RequestLimits, ToolCall, Ttl, plan::Decision,
};
use context_window_formats::Session;
use context_window_report as report;
use std::collections::BTreeSet;

/// A session with its manager, for plans and pages.
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) session: Session,
    pub(super) manager: ContextWindowManager,
}

impl Planned {
    fn new(name: &str, session: Session, config: &str) -> Option<Self> {
        let config = Config::from_toml(config, "config.toml").ok()?;
        let model =
            session.model.as_deref().map_or_else(|| Ok(Model::custom("default")), Model::named).ok()?;
        let manager = ContextWindowManager::configured(model, config).ok()?;
        Some(Self { name: name.into(), session, manager })
    }

    /// Returns the session's limits with this budget.
    pub(super) fn at(&self, budget: u64) -> RequestLimits {
        let mut limits = self.session.limits;
        limits.prompt_budget = Some(budget);
        limits
    }

    fn page(&self, redact: bool) -> Option<(ContextPlan, String)> {
        let request = self.session.request();
        let plan = self.manager.build_plan(&request).ok()?;
        let explanations = self.manager.explainer(&request).explain_all().unwrap();
        let html = report::html(&plan)
            .with_title(&self.name)
            .with_request(&request)
            .with_explanations(&explanations);
        let page = html.with_redaction(redact).render().unwrap();
        Some((plan, page))
    }
}

/// Returns every example, and every fixture that plans.
pub(super) fn all() -> Vec<Planned> {
    let root = crate::support::root();
    let mut all = Vec::new();
    for folder in ["examples", "tests/fixtures"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let (session, config, budget) = match folder {
                "examples" => (text, String::new(), None),
                _ => (
                    value["session"].to_string(),
                    value["config"].as_str().unwrap_or_default().to_owned(),
                    value["budget"].as_u64(),
                ),
            };
            let Ok(mut session) = Session::from_json(&session) else { continue };
            session.limits.prompt_budget = budget.or(session.limits.prompt_budget);
            all.extend(Planned::new(&name, session, &config));
        }
    }
    all
}

/// Returns the texts of the elements with a class, in order.
fn of_class(page: &str, class: &str) -> Vec<String> {
    let opening = format!("class=\"{class}\"");
    page.split(&opening)
        .skip(1)
        .map(|rest| {
            let rest = &rest[rest.find('>').unwrap() + 1..];
            unescaped(&rest[..rest.find('<').unwrap()])
        })
        .collect()
}

#[test]
fn every_row_of_every_plan_is_on_its_page_once_and_in_order() {
    let mut pages = 0;
    for planned in all() {
        let Some((plan, page)) = planned.page(false) else { continue };
        pages += 1;
        is_sound(&page);
        let rows = plan.included.iter().map(Decision::Included);
        let rows = rows.chain(plan.excluded.iter().map(Decision::Excluded));
        let words: Vec<_> = rows.map(|row| report::row(&plan, row)).collect();
        let ids: Vec<&str> = words.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(of_class(&page, "id"), ids, "{}", planned.name);
        let tokens: Vec<String> = words.iter().map(|row| format!("{} ", row.tokens)).collect();
        assert_eq!(of_class(&page, "tokens"), tokens, "{}", planned.name);
        for row in &words {
            assert!(unescaped(&page).contains(&row.why), "{}: {}", planned.name, row.why);
        }
        for notice in &plan.notices {
            assert!(page.contains(&format!("<li><b>{}</b>", notice.rule())), "{}", planned.name);
        }
        let figures = [
            plan.prompt_budget,
            plan.estimated_tokens_total.tokens,
            plan.usage.conversation_tokens.tokens,
            plan.overflow_tokens(),
        ];
        for figure in figures {
            assert!(page.contains(&report::grouped(figure)), "{}: {figure}", planned.name);
        }
        assert_eq!(Some(page), planned.page(false).map(|(_, page)| page), "{}: other bytes", planned.name);
    }
    assert!(pages > 80, "only {pages} pages");
}

/// Collects every longer text of a session.
fn texts_of(value: &serde_json::Value, key: &str, texts: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::String(text) => {
            let is_text = ["content", "text", "arguments", "focus", "reasoning_content", "query", "name"];
            if is_text.contains(&key) && text.trim().chars().count() > 8 {
                texts.insert(text.clone());
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|one| texts_of(one, key, texts)),
        serde_json::Value::Object(all) => all.iter().for_each(|(key, one)| texts_of(one, key, texts)),
        _ => {}
    }
}

#[test]
fn a_redacted_page_holds_no_text_of_its_session() {
    let (mut pages, mut looked_for) = (0, 0);
    let root = crate::support::root();
    for planned in all() {
        let Some((_, page)) = planned.page(true) else { continue };
        let Some((_, whole)) = planned.page(false) else { continue };
        is_sound(&page);
        let folder =
            if root.join("examples").join(&planned.name).exists() { "examples" } else { "tests/fixtures" };
        let file = std::fs::read_to_string(root.join(folder).join(&planned.name)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&file).unwrap();
        let session = if folder == "examples" { &value } else { &value["session"] };
        let mut texts = BTreeSet::new();
        // Tool definitions are skipped, because a notice may name a tool.
        for (key, part) in session.as_object().into_iter().flatten().filter(|(key, _)| *key != "tools") {
            texts_of(part, key, &mut texts);
        }
        let (page, whole) = (unescaped(&page), unescaped(&whole));
        for text in texts {
            // Any two adjacent words, not only the whole text.
            let words: Vec<&str> = text.split_whitespace().collect();
            for run in words.windows(2).map(|pair| pair.join(" ")).filter(|run| run.chars().count() > 8) {
                if whole.contains(&run) && !is_of_the_template(&run) {
                    looked_for += 1;
                    assert!(!page.contains(&run), "{}: {run:?}", planned.name);
                }
            }
        }
        pages += 1;
    }
    assert!(pages > 80 && looked_for > 1_000, "{pages} pages, {looked_for} runs of words");
}

/// Returns true for words of the page template, which are on every page.
fn is_of_the_template(run: &str) -> bool {
    let log = Conversation::new();
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    thread_local!(static EMPTY: std::cell::OnceCell<String> = const { std::cell::OnceCell::new() });
    EMPTY.with(|page| {
        page.get_or_init(|| {
            let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
            unescaped(&report::html(&plan).render().unwrap())
        })
        .contains(run)
    })
}

/// Texts of an attacker who wants a page to run code.
const HOSTILE: [&str; 9] = [
    "<script>alert('a')</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x=\"",
    "' autofocus onfocus='alert(1)",
    "</bdi></summary></details></li><iframe src=\"https://example.com\"></iframe>",
    "\u{202e}desrever\u{202c} \u{2066}x\u{2069} \u{200b}\u{feff}\u{0}\u{1b}[31m\u{7}\u{9b}\r\n",
    "<!--{{ 7*7 }}{% raw %}]]>&lt;b&gt;&amp;lt;",
    "javascript:alert(1)",
];

#[test]
fn hostile_texts_stay_texts_at_every_position() {
    for (at, hostile) in HOSTILE.iter().enumerate() {
        let mut log = Conversation::new();
        log.push_system(format!("s{hostile}"), *hostile);
        log.pin(PinnedItem::new(format!("n{hostile}"), *hostile).with_ttl(Ttl::turns(2)));
        log.push(Message::user(*hostile).with_id(format!("u{hostile}")).with_name(*hostile));
        let call = ToolCall::new(format!("c{hostile}"), *hostile, *hostile);
        log.push(Message::assistant(*hostile).with_reasoning(*hostile).with_tool_calls([call]));
        log.push(Message::tool(format!("c{hostile}"), *hostile));
        log.push(Message::tool(format!("orphan{hostile}"), *hostile));
        let image = Part::Image { url: (*hostile).into(), detail: None };
        log.push(Message::user("").with_parts([Part::Text((*hostile).into()), image]));
        let rag = (0..3).map(|n| {
            RagItem::new(format!("r{n}{hostile}"), 0.5, format!("{hostile}{n}")).with_origin(*hostile)
        });
        let request = PlanRequest::new(&log)
            .with_rag(rag)
            .with_focus(*hostile)
            .with_state(format!("z{hostile}"), *hostile);
        let model = Model::custom(hostile);
        let manager = ContextWindowManager::configured(model, Config::default()).unwrap();
        for budget in [1_000_000, 150, 10] {
            let limits = RequestLimits::prompt_budget(budget);
            let request = request.clone().with_limits(limits);
            let plan = manager.build_plan(&request).unwrap();
            let explanations = manager.explainer(&request).explain_all().unwrap();
            let earlier = [plan.clone(), plan.clone()];
            for redact in [false, true] {
                let html = report::html(&plan)
                    .with_request(&request)
                    .with_explanations(&explanations)
                    .with_title(*hostile);
                let page = html.with_earlier(&earlier).with_redaction(redact).render().unwrap();
                is_sound(&page);
                let (body, _) = page.split_once("<script>").unwrap();
                assert!(
                    at != 7 || redact || body.contains("{{ 7*7 }}"),
                    "no text of a session is a template"
                );
            }
        }
    }
}

/// Computes SHA-256 for the two texts in the page's policy; the test vectors of FIPS 180-4 are below.
fn sha256(bytes: &[u8]) -> [u8; 32] {
    let primes = (2_u64..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    let fraction = |prime: u64, root: f64| {
        let root = (prime as f64).powf(root);
        (root.fract() * 4_294_967_296.0) as u32
    };
    let primes: Vec<u64> = primes.take(64).collect();
    let k: Vec<u32> = primes.iter().map(|prime| fraction(*prime, 1.0 / 3.0)).collect();
    let mut state: Vec<u32> = primes.iter().take(8).map(|prime| fraction(*prime, 0.5)).collect();
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - bytes.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut w: Vec<u32> =
            block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
        for t in 16..64 {
            let (a, b) = (w[t - 15], w[t - 2]);
            let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w.push(w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1));
        }
        let mut v = state.clone();
        for t in 0..64 {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[4] & v[5] ^ !v[4] & v[6];
            let one = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(k[t]).wrapping_add(w[t]);
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(one);
            v[0] = one.wrapping_add(s0.wrapping_add(majority));
        }
        state.iter_mut().zip(v).for_each(|(word, add)| *word = word.wrapping_add(add));
    }
    let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.try_into().unwrap()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let digit = |at: u32| DIGITS[(word >> (18 - 6 * at) & 63) as usize] as char;
        text.extend((0..=chunk.len() as u32).map(digit));
        text.extend((chunk.len()..3).map(|_| '='));
    }
    text
}

#[test]
fn the_policy_lets_in_this_style_and_this_script_and_nothing_else() {
    assert_eq!(base64(&sha256(b"")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    assert_eq!(base64(&sha256(b"abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    let log = Conversation::new();
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let page = report::html(&manager.build_plan(&PlanRequest::new(&log)).unwrap()).render().unwrap();
    let inside = |name: &str| {
        let (_, rest) = page.split_once(&format!("<{name}>")).unwrap();
        rest.split_once(&format!("</{name}>")).unwrap().0
    };
    for (name, key) in [("style", "style-src"), ("script", "script-src")] {
        let hash = base64(&sha256(inside(name).as_bytes()));
        assert!(page.contains(&format!("{key} 'sha256-{hash}';")), "the hash of the {name} is {hash} now");
    }
    assert!(page.contains("content=\"default-src 'none'; "));
    assert!(!page.contains("unsafe-inline") && !page.contains("style=\""));
}

#[test]
fn a_small_page_looks_as_it_did() {
    let log = Conversation::from([
        Message::system("Answer shortly."),
        Message::user("An older question that is long enough to be left out of this prompt."),
        Message::assistant("An older answer."),
        Message::user("Is <b>this</b> text?"),
    ]);
    let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(25));
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let plan = manager.build_plan(&request).unwrap();
    let explanations = manager.explainer(&request).explain_all().unwrap();
    let page = report::html(&plan)
        .with_title("A small page")
        .with_request(&request)
        .with_explanations(&explanations);
    let page = page.render().unwrap();
    // Style and script are separate files.
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, _) = rest.split_once("<script>").unwrap();
    let head = head.lines().filter(|line| !line.contains("Content-Security-Policy"));
    insta::assert_snapshot!(format!("{}{body}", head.collect::<Vec<_>>().join("\n")));
}

#[test]
fn timeline_has_one_line_per_prompt() {
    let mut log = Conversation::from([Message::user("One?")]);
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let mut plans = Vec::new();
    for text in ["Two?", "Three?"] {
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        log.push_reply(&plan, Message::assistant("Yes."), None);
        plans.push(plan);
        log.push(Message::user(text));
    }
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let repeated = plan.repeated().unwrap();
    assert!(!report::html(&plan).render().unwrap().contains("id=\"timeline\""));
    let page = report::html(&plan).with_earlier(&plans).render().unwrap();
    is_sound(&page);
    let (_, picture) = page.split_once("id=\"timeline\"").unwrap();
    let (picture, table) = picture.split_once("<table>").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    assert_eq!((picture.matches("class=\"hit\"").count(), table.matches("<tr>").count()), (3, 4));
    let order = [">1</th>", ">2</th>", ">3</th>"].map(|name| table.find(name).unwrap());
    assert!(order.is_sorted(), "in time order");
    assert!(table.contains(&format!("<td>{}</td>", repeated.tokens)), "{table}");
    // Every kind has an outline, and the bar of the largest prompt ends at its token count.
    for name in ["user", "assistant", "overhead"] {
        assert!(picture.contains(&format!("<path class=\"fill-{name}\" d=\"M")), "{picture}");
    }
    let heights = |class: &str| -> u64 {
        let (_, path) = picture.split_once(&format!("fill-{class}\" d=\"")).unwrap();
        let (path, _) = path.split_once('"').unwrap();
        let last = path.rsplit('M').next().unwrap();
        last.split('v').nth(1).unwrap().split('h').next().unwrap().parse().unwrap()
    };
    assert_eq!(
        heights("user") + heights("assistant") + heights("overhead"),
        1_000,
        "the largest is the whole height"
    );

    let page = report::html(&plan).with_earlier(&plans).with_first_number(41).render().unwrap();
    assert!(
        page.contains("40 older prompts are not shown")
            && page.contains(">43</th>")
            && page.contains(">41</th>")
    );
}

#[test]
fn timeline_marks_events() {
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let mut log =
        Conversation::from([Message::user("What is a kettle, and why does it whistle when it boils?")]);
    let mut plans = Vec::new();
    for (text, budget) in [("And a pot?", 1_000), ("And a pan?", 24), ("And a lid?", 1_000)] {
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        let plan = manager.build_plan(&request).unwrap();
        log.push_reply(&plan, Message::assistant("A thing of the kitchen."), None);
        plans.push(plan);
        log.push(Message::user(text));
    }
    let plan =
        manager.build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(5))).unwrap();
    let model = Model::named("gpt-4o").unwrap();
    let page = report::html(&plan).with_earlier(&plans).with_model(&model).render().unwrap();
    is_sound(&page);
    let mark = |class: &str| -> Vec<u64> {
        let Some((_, path)) = page.split_once(&format!("class=\"mark-{class}\" d=\"")) else {
            return Vec::new();
        };
        let (path, _) = path.split_once('"').unwrap();
        path.split('M')
            .skip(1)
            .map(|one| one.split(' ').next().unwrap().parse::<u64>().unwrap() / 100)
            .collect()
    };
    let breaks: Vec<u64> = plans
        .iter()
        .chain([&plan])
        .enumerate()
        .filter_map(|(at, plan)| {
            plan.repeated()?.cause?;
            Some(at as u64)
        })
        .collect();
    assert!(!breaks.is_empty());
    assert_eq!((mark("break"), mark("over"), mark("lost")), (breaks, vec![3], Vec::new()));
    assert!(page.contains("; cache break at m0: dropped: budget"), "the cause is in the tooltip");
    assert!(page.contains("for input, $"), "and what all of it costs");
}

#[test]
fn a_speaker_is_no_preview() {
    let log = Conversation::from([Message::user("The kettle whistles.").with_name("Ida")]);
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let page = report::html(&manager.build_plan(&PlanRequest::new(&log)).unwrap()).render().unwrap();
    assert_eq!(of_class(&page, "preview\" dir=\"auto"), ["The kettle whistles."]);
}

/// Returns sessions whose pages are checked at every budget: shipped ones, and real ones with real passages.
fn at_every_budget() -> Vec<(String, String)> {
    let root = crate::support::root();
    let shipped =
        ["support-chat", "agent-parallel-tools", "overflow", "pins-ttl"].into_iter().filter_map(|name| {
            let text = std::fs::read_to_string(root.join(format!("examples/{name}.json"))).ok()?;
            Some((name.to_owned(), serde_json::from_str(&text).ok()?))
        });
    let mut all: Vec<(String, serde_json::Value)> = shipped.collect();
    let lines = |prefix: &str| -> Vec<serde_json::Value> {
        let texts = crate::support::data::texts(&[prefix]);
        texts
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    let queries = lines("rag_");
    for prefix in [
        "conv_claudecode",
        "conv_small",
        "conv_tau2",
        "conv_taubench",
        "conv_reasontool",
        "long_memorybank",
        "conv_glaive",
    ] {
        let talks = lines(prefix);
        let Some(mut session) = talks.into_iter().nth(3) else { continue };
        let messages = session["messages"].as_array_mut().unwrap();
        let from = messages.len().saturating_sub(30);
        messages.drain(..from);
        messages.retain(|message| message.to_string().len() < 3_000);
        messages.iter_mut().for_each(|message| drop(message.as_object_mut().unwrap().remove("id")));
        let passages = queries.get(all.len()).map_or_else(Vec::new, |query| {
            query["passages"].as_array().unwrap().iter().take(8).cloned().collect()
        });
        let session = serde_json::json!({"model": "gpt-4o", "messages": messages, "rag": passages,
            "pinned": [{"id": "note", "text": "Answer in one line.", "priority": "high"}]});
        all.push((prefix.to_owned(), session));
    }
    let limited = |(name, mut session): (String, serde_json::Value)| {
        // Some start with few items included, some with most.
        let budget = [60, 900, 250][name.len() % 3];
        session["limits"] = serde_json::json!({"context_len": EVERY_BUDGET, "max_completion": 0, "safety_buffer": 0,
            "prompt_budget": budget});
        (name, session.to_string())
    };
    all.into_iter().map(limited).collect()
}

/// The largest budget of these pages, in tokens.
const EVERY_BUDGET: u64 = 2_500;

/// Returns the other numbers of a plan that a page shows.
fn figures(plan: &ContextPlan) -> serde_json::Value {
    let sections = plan.sections.iter().map(|one| [one.budget, one.used, one.included, one.excluded]);
    let overhead = plan.overhead.iter().map(|line| line.tokens);
    let rows = plan.included.iter().filter(|row| row.source != context_window::Source::Synthetic);
    let mut rows: Vec<(String, u64)> =
        rows.map(|row| (row.id.to_string(), row.token_estimate.tokens)).collect();
    rows.sort();
    let groups = plan.composition(5).by_group();
    let parts: Vec<u64> = groups.kinds.iter().map(|(_, tokens)| *tokens).collect();
    serde_json::json!({
        "percent": report::percent(plan.estimated_tokens_total.tokens, plan.prompt_budget),
        "sections": sections.collect::<Vec<_>>(),
        "overhead": overhead.collect::<Vec<_>>(),
        "items": plan.included.iter().map(|row| row.token_estimate.tokens).sum::<u64>(),
        "in": plan.included.len(),
        "out": plan.excluded.iter().map(|row| row.count).sum::<u64>(),
        "left": plan.left_over(),
        "over": plan.overflow_tokens(),
        "rows": rows,
        "groups": parts,
        "shares": report::percentages(&parts, groups.total),
        "largest": groups.largest.iter().map(|item| item.tokens.tokens).collect::<Vec<_>>(),
        "conversation": Some(plan.usage.conversation_tokens)
            .filter(|tokens| tokens.certainty == context_window::tokens::Certainty::Exact)
            .map(|tokens| tokens.tokens),
    })
}

/// Writes pages with a slider, each with the expected plans at every budget, to the folder that
/// `CONTEXT_WINDOW_PAGES` names. `tests/browser/check.py` moves the slider on all of them and compares the
/// displayed values.
#[test]
fn write_slider_pages_with_expected_plans() {
    let folder = std::env::var_os("CONTEXT_WINDOW_PAGES").map(std::path::PathBuf::from);
    let mut pages = 0;
    for (name, text) in at_every_budget() {
        let session = Session::from_json(&text).unwrap();
        let Some(planned) = Planned::new(&name, session, "") else { continue };
        let request = planned.session.request();
        let plan = planned.manager.build_plan(&request).unwrap();
        let map = planned.manager.explainer(&request).budget_map(usize::MAX).unwrap();
        let page = report::html(&plan)
            .with_title(&name)
            .with_request(&request)
            .with_budget_map(&map)
            .render()
            .unwrap();
        is_sound(&page);
        assert!(page.contains("id=\"slider\"") && map.steps.len() > 2, "{name}: {} steps", map.steps.len());
        pages += 1;
        let Some(folder) = &folder else { continue };
        std::fs::create_dir_all(folder).unwrap();
        let planned_at = |budget| {
            let plan = planned.manager.build_plan(&request.clone().with_limits(planned.at(budget))).unwrap();
            let ids: BTreeSet<String> = plan.included.iter().map(|row| row.id.to_string()).collect();
            let kinds: Vec<(String, u64)> =
                plan.composition(0).kinds.into_iter().map(|(kind, tokens)| (kind.text(), tokens)).collect();
            serde_json::json!([budget, plan.estimated_tokens_total.tokens, ids, kinds, figures(&plan)])
        };
        let all: Vec<_> = (1..=EVERY_BUDGET).map(planned_at).collect();
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
        std::fs::write(folder.join(format!("{name}.json")), serde_json::Value::from(all).to_string())
            .unwrap();
    }
    assert!(pages >= 3, "{pages}");
}
