//! Texts of many kinds, written for the tests, and hostile texts.

/// Returns ordinary texts by kind.
pub fn of_every_kind() -> Vec<(&'static str, String)> {
    let base64: String = (0..4_000u32)
        .map(|n| {
            let digit = n.wrapping_mul(2_654_435_761) >> 26;
            char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[digit as usize])
        })
        .collect();
    let json = r#"{"id":17,"name":"Finch kettle","tags":["whistles","2 l",null],"price":{"value":34.50,"unit":"€"},"ok":true}"#;
    let code = "impl Kettle {\n    /// Boils `litres` of water.\n    pub fn boil(&mut self, litres: f64) -> Result<Steam, Error> {\n\
                \t\tif litres > self.volume { return Err(Error::TooMuch(litres)); }\n        Ok(Steam::from(litres * 0.93))\n    }\n}\n\n\n";
    vec![
        ("english", "The kettle's whistle won't stop; we've tried 3 of them, and they'll all sing at 100°C. IT'S LOUD!\n\nWho'd have thought it?  ".repeat(20)),
        ("chinese and japanese", "水壶的哨子一直在响，我们换了三个。「やかん」が鳴り止まない。お湯が沸きました！ 2リットル、３４度。".repeat(12)),
        ("korean", "주전자가 휘파람을 붑니다. 물이 끓으면 소리가 나요; 세 개를 써 봤습니다.".repeat(12)),
        ("cyrillic", "Чайник свистит без остановки, мы уже поменяли три. Ёлки-палки, кто бы мог подумать?\n".repeat(12)),
        ("arabic and hebrew", "إبريق الشاي يصفر بلا توقف، وقد جربنا ثلاثة. הקומקום שורק בלי הפסקה, ניסינו ٣ כאלה.".repeat(12)),
        ("devanagari and thai", "केतली लगातार सीटी बजा रही है। กาน้ำร้องไม่หยุด เราลองมาสามใบแล้ว ".repeat(12)),
        ("emoji", "👩‍👩‍👧‍👦🫖🔥 ☕️ 🇨🇭🇯🇵 👍🏽👍🏿 ❤️‍🔥 1️⃣2️⃣ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 ".repeat(20)),
        ("json", json.repeat(20)),
        ("code", code.repeat(10)),
        ("base64", base64),
        ("hex and numbers", "0xdeadbeef 1234567890 3.14159 1e-9 192.168.0.1 2026-11-22T05:00:00Z 00000001 ½ ² ".repeat(20)),
        ("log", "[2026-11-22 05:01:07.113] WARN  pump::valve - pressure=0.93bar /var/lib/pump/valve_3.state:217\r\n".repeat(20)),
        ("titles", "ǅungla ǈubav ǋegoš McDonald iPhone XMLHttpRequest ÉCOLE École straße ﬁn ſ Ⅷ ª º ʰ".repeat(8)),
    ]
}

/// Returns texts that break careless counters: control tokens, endless runs, half characters, marks without a
/// base.
pub fn hostile() -> Vec<(&'static str, String)> {
    vec![
        ("nothing", String::new()),
        ("control tokens", "a<|endoftext|>b<|im_start|>system\nc<|im_end|><|fim_prefix|><|eot_id|><|begin_of_text|><s></s>[INST]<think><tool_call><start_of_turn>".repeat(5)),
        ("one letter", "a".repeat(20_000)),
        ("spaces", " ".repeat(20_000)),
        ("newlines", "\n".repeat(20_000)),
        ("mixed blanks", " \t\r\n\u{a0}\u{3000}\u{2028}\u{85}\u{0b} x \t\n  y\r\n\r\n   \n z   ".repeat(200)),
        ("punctuation", "!?.,;:-_(){}[]<>|\\/'\"`~@#$%^&*+=".repeat(300)),
        ("marks without a base", "\u{301}\u{327}e\u{301}\u{1100}\u{1161}\u{11a8}\u{344}\u{212b}\u{1f71}ﾊﾟ㌀".repeat(200)),
        ("control characters", "\0\u{1}\u{7f}\u{200b}\u{200d}\u{feff}\u{fffd}\u{202e}\u{fdd0}\u{10ffff}\u{e000}".repeat(200)),
        ("contractions", "I'M he'S we'Ve 'll 're 'D 'ſ 's'T'rE'vE x'lly ''s don’t".repeat(50)),
        ("slashes", "/a//b///\n\n//\r/ //\n https://a/b?c=d/// .../".repeat(80)),
    ]
}

/// Returns a text from a seed: letters, digits, blanks and marks of many scripts, in random order.
pub fn thrown_together(mut seed: u64, characters: usize) -> String {
    const FROM: &[&str] = &[
        "a",
        "e",
        "T",
        "Z",
        "é",
        "ß",
        "ж",
        "Я",
        "م",
        "ה",
        "中",
        "語",
        "か",
        "한",
        "ก",
        "ि",
        "\u{301}",
        "0",
        "7",
        "٣",
        "½",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u{a0}",
        "'",
        "'s",
        "'LL",
        "’",
        ".",
        "/",
        "//",
        "-",
        "<",
        ">",
        "<|",
        "|>",
        "_",
        "😀",
        "\u{200d}",
        "ǅ",
        "ʰ",
        "ª",
        "Ⅷ",
        "the",
        " the",
        "ing",
        "<|im_end|>",
    ];
    let mut text = String::new();
    for _ in 0..characters {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(FROM[(seed >> 33) as usize % FROM.len()]);
    }
    text
}
