//! Limits on the texts that a template builds. The engine counts steps but not bytes, and forty steps that
//! double a text exhaust the memory. Therefore the compiled source has filters of this module at every
//! operand (see `source`). Printing, joining, replacing and repeating are counted before the text is built.

use crate::text::plain::grouped;
use minijinja::{
    Environment, Error, ErrorKind, Output, State, Value, filters,
    functions::{self, Function},
    value::{FunctionArgs, FunctionResult, Rest, ValueKind},
};
use minijinja_contrib::pycompat::unknown_method_callback;
use std::{cell::RefCell, fmt::Write as _, io};

/// The bytes that one text may have in addition to those for the prompt, far more than any template writes
/// itself.
const ONE: u64 = 4 << 20;
/// The number of copies of the prompt that one text may contain.
const TIMES: u64 = 8;
/// The limit on all texts together, as a multiple of the limit on one text. Texts are copied from value to
/// value.
const ALL: u64 = 64;
/// The minimum size in bytes of a list entry.
const ENTRY: u64 = 32;

/// The source text that closes a value assigned to a name.
pub(super) const KEPT_END: &str = ")|_kept ";

/// Returns the filters of the left and the right operand of an operator, or `None` for operators that build
/// nothing.
pub(super) fn operand_filters(operator: &str) -> Option<(&'static str, &'static str)> {
    match operator {
        // The result has the size of both operands, so both are measured.
        "~" => Some(("|_joined", "|_joined")),
        // A list that grows entry by entry is the left operand, so only the new entries are measured.
        "+" => Some(("|_added", "|_joined")),
        "*" => Some(("|_times", "|_product")),
        _ => None,
    }
}

/// The bytes that one rendering may still build.
struct Budget {
    prompt: u64,
    one: u64,
    left: u64,
    /// The left operands of products whose right operands are not evaluated yet.
    factors: Vec<Value>,
}

// Filters belong to the environment, a budget to one rendering, which runs on one thread.
thread_local! {
    static BUDGET: RefCell<Option<Budget>> = const { RefCell::new(None) };
}

/// Renders a prompt of `prompt` bytes within the limits and returns the text.
///
/// # Errors
///
/// Returns the error of the template or the engine, or `OutOfFuel` with the exceeded limit.
pub(super) fn bounded(
    prompt: u64,
    render: impl FnOnce(&mut dyn io::Write) -> Result<(), Error>,
) -> Result<String, Error> {
    let one = prompt.saturating_mul(TIMES).saturating_add(ONE);
    let budget = Budget { prompt, one, left: one.saturating_mul(ALL), factors: Vec::new() };
    BUDGET.set(Some(budget));
    let mut out = Text { bytes: Vec::new(), most: one, over: false };
    let done = render(&mut out);
    // The engine reports a writer's error as its own, so the flag of the writer decides.
    let over = out.over;
    let done = if over { Err(too_large(one, "one text", prompt)) } else { done };
    // Cleared before the error returns, so that no later rendering on this thread uses it.
    BUDGET.set(None);
    done?;
    String::from_utf8(out.bytes).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

fn too_large(most: u64, of: &str, prompt: u64) -> Error {
    let (most, prompt) = (grouped(most), grouped(prompt));
    let detail =
        format!("builds more than {most} bytes in {of}, for a prompt of {prompt} bytes; expected no more");
    Error::new(ErrorKind::OutOfFuel, detail)
}

/// A writer that accepts a limited number of bytes.
struct Text {
    bytes: Vec<u8>,
    most: u64,
    over: bool,
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.most {
            self.over = true;
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a value as JSON, up to the limit of one text.
pub(super) fn write_json(
    write: impl FnOnce(&mut dyn io::Write) -> Result<(), String>,
) -> Result<String, Error> {
    let (one, prompt) = BUDGET
        .with_borrow(|budget| budget.as_ref().map_or((u64::MAX, 0), |budget| (budget.one, budget.prompt)));
    let mut out = Text { bytes: Vec::new(), most: one, over: false };
    let done = write(&mut out);
    if out.over {
        return Err(too_large(one, "one text", prompt));
    }
    done.map_err(|detail| Error::new(ErrorKind::BadSerialization, detail))?;
    charge(out.bytes.len() as u64)?;
    String::from_utf8(out.bytes).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Subtracts the bytes of a value from the budget before the value is built.
fn charge(bytes: u64) -> Result<(), Error> {
    BUDGET.with_borrow_mut(|budget| {
        let Some(budget) = budget else { return Ok(()) };
        if bytes > budget.one {
            return Err(too_large(budget.one, "one text", budget.prompt));
        }
        budget.left = budget
            .left
            .checked_sub(bytes)
            .ok_or_else(|| too_large(budget.one.saturating_mul(ALL), "all texts together", budget.prompt))?;
        Ok(())
    })
}

/// A writer that only counts, and stops at the limit of one text.
struct Measure {
    bytes: u64,
    most: u64,
}

impl std::fmt::Write for Measure {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes += text.len() as u64;
        if self.bytes > self.most { Err(std::fmt::Error) } else { Ok(()) }
    }
}

/// Returns the size in bytes of a value as text, or a larger number than the limit if it exceeds that.
fn bytes(value: &Value) -> u64 {
    if let Some(text) = value.as_str() {
        return text.len() as u64;
    }
    let most = BUDGET.with_borrow(|budget| budget.as_ref().map_or(u64::MAX, |budget| budget.one));
    let mut measure = Measure { bytes: 0, most };
    if write!(measure, "{value}").is_err() { most.saturating_add(1) } else { measure.bytes }
}

/// Returns the size in bytes of a value itself. For a list, it is the size of the entries without their
/// contents.
fn own_bytes(value: &Value) -> u64 {
    match value.as_str() {
        Some(text) => text.len() as u64,
        None => ENTRY * (1 + value.len().unwrap_or(0) as u64),
    }
}

/// Installs the counting filters, methods and printing in an environment.
pub(super) fn watch(environment: &mut Environment<'_>) {
    environment.set_formatter(print);
    environment.add_filter("_joined", |value: Value| charge(bytes(&value)).map(|()| value));
    environment.add_filter("_added", |value: Value| charge(own_bytes(&value)).map(|()| value));
    environment.add_filter("_kept", |value: Value| charge(own_bytes(&value)).map(|()| value));
    // A product needs both operands: the left one waits on a stack, because the right one may contain
    // products.
    environment.add_filter("_times", |value: Value| {
        let kept = value.clone();
        BUDGET.with_borrow_mut(|budget| budget.as_mut().map(|budget| budget.factors.push(kept)));
        value
    });
    environment.add_filter("_product", |value: Value| {
        let left = BUDGET.with_borrow_mut(|budget| budget.as_mut().and_then(|budget| budget.factors.pop()));
        charge(left.map_or(0, |left| repeated(&left, &value).max(repeated(&value, &left)))).map(|()| value)
    });
    environment.set_unknown_method_callback(|state, value, method, args| {
        let mut all = vec![value.clone()];
        all.extend_from_slice(args);
        if method == "join" {
            // `separator.join(list)` has its operands in the other order than the filter `join`.
            all.swap(0, 1.min(args.len()));
        }
        charge(built(method, &all))?;
        unknown_method_callback(state, value, method, args)
    });
    counted(environment, "replace", filters::replace);
    counted(environment, "join", filters::join);
    counted(environment, "indent", filters::indent);
    counted(environment, "format", filters::format);
    counted(environment, "list", filters::list);
    counted(environment, "batch", filters::batch);
    counted(environment, "slice", filters::slice);
    counted(environment, "split", filters::split);
    counted(environment, "lines", filters::lines);
    counted(environment, "sum", filters::sum);
    counted(environment, "string", filters::string);
    counted(environment, "safe", filters::safe);
    counted(environment, "escape", filters::escape);
    counted(environment, "e", filters::escape);
    counted(environment, "pprint", filters::pprint);
    counted(environment, "upper", filters::upper);
    counted(environment, "lower", filters::lower);
    counted(environment, "title", filters::title);
    counted(environment, "capitalize", filters::capitalize);
    counted(environment, "trim", filters::trim);
    environment.add_function("range", |lower: isize, upper: Option<isize>, step: Option<isize>| {
        let range = functions::range(lower, upper, step)?;
        charge(ENTRY * range.len().unwrap_or(0) as u64).map(|()| range)
    });
}

/// Adds a filter of the engine that counts its result before it is built.
fn counted<F, Rv, Args>(environment: &mut Environment<'_>, name: &'static str, filter: F)
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let filter = Value::from_function(filter);
    environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<Value>| {
        charge(built(name, &args))?;
        filter.call(state, &args)
    });
}

/// Prints a value, if the budget allows it.
fn print(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    charge(bytes(value))?;
    write!(out, "{value}").map_err(Error::from)
}

/// Returns the size in bytes of a value that is repeated `times` times, or 0 if the two are no such product.
fn repeated(value: &Value, times: &Value) -> u64 {
    let Some(times) = times.as_i64().and_then(|times| u64::try_from(times).ok()) else { return 0 };
    match value.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable => own_bytes(value).saturating_mul(times),
        _ => 0,
    }
}

/// Returns the maximum size in bytes of the result of a filter or method.
fn built(name: &str, args: &[Value]) -> u64 {
    let Some(value) = args.first() else { return 0 };
    let own = |at: usize| args.get(at).map_or(0, bytes);
    let text = |at: usize| args.get(at).and_then(|value| value.as_str()).unwrap_or_default();
    let number =
        |at: usize| args.get(at).and_then(Value::as_i64).map_or(0, |number| number.max(0).unsigned_abs());
    match name {
        "replace" => {
            // An upper bound: the replaced texts are not subtracted.
            let found = text(0).matches(text(1)).count() as u64;
            own(0).saturating_add(found.saturating_mul(own(2)))
        }
        "join" => {
            let entries = value.try_iter().into_iter().flatten();
            let separator = own(1);
            entries.fold(0_u64, |sum, entry| sum.saturating_add(bytes(&entry)).saturating_add(separator))
        }
        "indent" => {
            let width = args[1..].iter().filter_map(|value| {
                value.as_i64().or_else(|| value.get_attr("width").ok().and_then(|width| width.as_i64()))
            });
            let width = width.max().unwrap_or(4).max(0).unsigned_abs();
            let lines = text(0).lines().count() as u64 + 1;
            own(0).saturating_add(lines.saturating_mul(width)).max(width)
        }
        "format" => {
            let most = (1..args.len()).map(own).chain((1..args.len()).map(number)).max().unwrap_or(0);
            // A width in the format can exceed the length of any argument.
            let fields = text(0).matches(['%', '{']).count() as u64;
            let widths = text(0).split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
            let widths =
                widths.fold(0_u64, |sum, digits| sum.saturating_add(digits.parse().unwrap_or(u64::MAX)));
            own(0).saturating_add(fields.saturating_mul(most)).saturating_add(widths)
        }
        "list" | "splitlines" | "lines" => match value.as_str() {
            Some(text) if name == "list" => ENTRY * text.chars().count() as u64,
            Some(text) => text.len() as u64 + ENTRY * text.lines().count() as u64,
            None => own_bytes(value),
        },
        "batch" | "slice" => own_bytes(value).saturating_add(number(1).saturating_mul(ENTRY)),
        "split" => {
            let pieces = match text(1) {
                "" => text(0).split_whitespace().count(),
                separator => text(0).matches(separator).count(),
            };
            own(0).saturating_add(ENTRY.saturating_mul(pieces as u64 + 1))
        }
        // An escape such as `&quot;` replaces one byte by at most 6.
        "escape" | "e" => own(0).saturating_mul(6),
        "sum" | "string" | "safe" | "pprint" | "upper" | "lower" | "title" | "capitalize" | "trim"
        | "strip" => own(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Renderer;
    use crate::{message::Message, provider::model::ChatTemplate};

    fn rendered(source: &str) -> Result<String, String> {
        let template = ChatTemplate::new("t/chat_template.jinja", source);
        let renderer = Renderer::new(&template, &[]).map_err(|error| error.to_string())?;
        renderer.render(&[Message::user("aa")], &[], true).map_err(|error| error.to_string())
    }

    /// Expressions that are longer than `x`.
    const STEPS: [&str; 17] = [
        "x ~ x",
        "x + x",
        "x * 2",
        "3 * x",
        "x[:] ~ x[1:]~x",
        "('' ~ (x ~ x))|trim",
        "[x, x]|join",
        "[x, 'b', x]|join(x)",
        "x.join([x, 'a'])",
        "x|replace('a', x ~ 'a')",
        "x.replace('a', 'aa')",
        "'{}{}'.format(x, x)",
        "'{0}{0}'.format(x)",
        "'%s%s'|format(x, x)",
        "x ~ x|upper",
        "(x|list + x|list)|join",
        "x|indent(1000000, true)",
    ];

    /// Builds templates that repeat a step sixty times, in four ways.
    fn templates(step: &str) -> [String; 4] {
        let with_x = |x: &str| {
            let of_a_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let mut out = String::new();
            let chars: Vec<char> = step.chars().collect();
            for (at, c) in chars.iter().enumerate() {
                let alone =
                    |other: Option<&char>| other.is_none_or(|other| !of_a_name(*other) || *other == '.');
                let before = at.checked_sub(1).and_then(|before| chars.get(before));
                let is_x = *c == 'x' && alone(before) && before != Some(&'.') && alone(chars.get(at + 1));
                if is_x { out.push_str(x) } else { out.push(*c) }
            }
            out
        };
        [
            format!(
                "{{% set ns = namespace(x='aa') %}}{{% for i in range(60) %}}{{% set ns.x = {} %}}{{% endfor %}}{{{{ ns.x }}}}",
                with_x("ns.x")
            ),
            format!(
                "{{% set x = 'aa' %}}{}{{{{ x|length }}}}",
                format!("{{% set x = {step} -%}}\n").repeat(60)
            ),
            format!(
                "{{% macro m(x, n) %}}{{% if n %}}{{{{ m({step}, n - 1) }}}}{{% else %}}{{{{ x }}}}{{% endif %}}{{% endmacro %}}{{{{ m('aa', 60) }}}}"
            ),
            format!(
                "{{% set x = 'aa' %}}{}{{{{ x }}}}",
                format!("{{% set x %}}text {{{{ {step} }}}}{{% endset %}}").repeat(60)
            ),
        ]
    }

    #[test]
    fn templates_that_grow_are_stopped_by_name() {
        for step in STEPS {
            for source in templates(step) {
                let error = rendered(&source).expect_err(&source);
                assert!(error.contains("t/chat_template.jinja: "), "{error}");
                assert!(error.contains("builds more than "), "{step}: {error} of {source}");
            }
        }
    }

    #[test]
    fn lists_loops_and_fields_that_grow_are_stopped() {
        let nested = "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
        let loops = "{% for i in range(100000) %}{% for j in range(100000) %}twenty characters of it{% endfor %}{% endfor %}";
        for source in [
            format!("{nested}{{{{ ns.x }}}}"),
            format!("{nested}{{{{ ns.x|tojson }}}}"),
            format!("{nested}{{{{ ns.x|string }}}}"),
            format!("{nested}{{{{ 'a' ~ ns.x }}}}"),
            format!("{nested}{{{{ ns.x|join('') }}}}"),
            format!("{nested}{{{{ ns.x|e }}}}"),
            loops.to_owned(),
            format!("{{% set x %}}{loops}{{% endset %}}"),
            format!("{{% macro m() %}}{loops}{{% endmacro %}}{{{{ m() }}}}"),
            "{{ 'a' * 90000000 }}".into(),
            "{{ ['a'] * 90000000 }}".into(),
            "{{ '%900000000d'|format(1) }}".into(),
            "{{ '%*d'|format(900000000, 1) }}".into(),
            "{{ '{:>900000000}'.format(1) }}".into(),
            "{{ 'a'|indent(9000000000, true) }}".into(),
            "{{ [1]|batch(900000000, 'x')|list }}".into(),
            "{{ [1]|slice(900000000)|list }}".into(),
            "{% set ns = namespace(l=['a']) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l|length }}".into(),
            "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = ns.l + [range(100000)|list] %}{% endfor %}{{ ns.l|length }}".into(),
        ] {
            let error = rendered(&source).expect_err(&source);
            let ends = error.contains("builds more than ") || error.contains("does not end within ");
            assert!(ends, "{error} of {source}");
        }
    }

    /// The compiled source renders the same text as the original source.
    #[test]
    fn compiled_source_renders_like_the_written_source() {
        for (source, expected) in [
            ("{{ (1 + 2) * 3 ~ 'a' * 2 }}|{{ -1 + 2 }}|{{ 2 ** 3 * 2 }}|{{ 7 - 2 + 1 }}", "9aa|1|16|6"),
            ("{{ [1] + [2, 3] }}|{{ ([1] * 3)|length }}|{{ 'x' in 'a' ~ 'x' }}", "[1, 2, 3]|3|True"),
            (
                "{% set a, b = 1, 'z' ~ 1 %}{{ a }}{{ b }}{{ nothing ~ 'u' }}{{ (nothing + 'u') if nothing is defined }}",
                "1z1u",
            ),
            (
                "{%- set x -%}\n  a \"q\" \\ b\n  {% if true %}\n    c\n  {% endif %}\n{% endset -%}\n[{{ x }}]",
                "[a \"q\" \\ b\n    c\n]",
            ),
            (
                "{% macro m(a, b='x' ~ 'y') %} {{ a }}-{{ b }} end{% endmacro %}{{ m(1) ~ m(2, *[3]) }}|",
                " 1-xy end 2-3 end|",
            ),
            ("{{ messages[0]['content'] + '!' }}{{ messages[-1].content[1:] ~ messages|length }}", "aa!a1"),
            ("{{ 'a,b'.split(',')[-1].strip('b') ~ 'x'|upper ~ {'k': 'v'}['k'] }}", "Xv"),
            (
                "{{ 'a' ~ 1 if 2 is odd else 'b' + 'c' }}{{ 'n' ~ (not 1) }}{{ loop is defined or 'q' ~ 'r' }}",
                "bcnFalseqr",
            ),
            (
                "{{ 'a' 'b' ~ \"c\\\"d\" }}{%- for i in range(3) if i + 1 > 1 %}{{ i * 2 }}{{ ',' if not loop.last }}{% endfor %}",
                "abc\"d2,4",
            ),
        ] {
            assert_eq!(rendered(source).as_deref(), Ok(expected), "{source}");
        }
    }

    /// A refused text is never built: the process grows by only a few times the limit of one text.
    #[test]
    #[cfg(target_os = "linux")]
    fn doubling_text_needs_little_memory() {
        let peak = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).expect("a peak in kB")
        };
        let before = peak();
        let error = rendered(&templates("x ~ x")[0]).expect_err("a text of 2^60 bytes");
        assert!(error.contains("for a prompt of 2 bytes"), "{error}");
        // Other tests of this process may run at the same time.
        assert!(peak() - before < 400_000, "{} kB more", peak() - before);
    }
}
