internal import MartletCore

/// The sentences of pages in one language.
package struct Words: Sendable {
    package let language: PageLanguage

    package init(_ language: PageLanguage) { self.language = language }

    /// All sentences of the language.
    static func table(_ language: PageLanguage) -> [WordKey: String] {
        switch language {
        case .english: english
        case .simplifiedChinese: simplifiedChinese
        case .traditionalChinese: traditionalChinese
        }
    }

    /// The sentence, with each `{name}` replaced by its value. Values are not read for further names.
    package func callAsFunction(_ key: WordKey, _ values: KeyValuePairs<String, String> = [:]) -> String {
        let sentence = Self.table(language)[key] ?? key.rawValue
        guard !values.isEmpty else { return sentence }
        var text = ""
        for (index, part) in sentence.split(separator: "{", omittingEmptySubsequences: false).enumerated() {
            guard index > 0, let end = part.firstIndex(of: "}") else {
                text += part
                continue
            }
            let value = values.first { $0.key == part[..<end] }?.value ?? ""
            append(value, to: &text)
            append(part[part.index(after: end)...], to: &text)
        }
        return text
    }

    /// Adds a part without the space before it where both sides are Han characters: the tables have spaces for names
    /// in Latin letters.
    private func append(_ part: some StringProtocol, to text: inout String) {
        let ends = text.last == " " ? (text.dropLast().last, part.first) : (text.last, part.dropFirst().first)
        guard text.last == " " || part.first == " ", Self.isHan(ends.0), Self.isHan(ends.1) else {
            text += part
            return
        }
        if text.last == " " {
            text.removeLast()
            text += part
        } else {
            text += part.dropFirst()
        }
    }

    private static func isHan(_ character: Character?) -> Bool {
        character?.unicodeScalars.first?.properties.isIdeographic ?? false
    }

    /// A length of time in its largest unit, rounded up: no one is asked to return too early.
    package func wait(seconds: Int64) -> String {
        let seconds = max(seconds, 1)
        func up(_ unit: Int64) -> Int64 { (seconds - 1) / unit + 1 }
        if seconds < 60 { return count(seconds, .secondOne, .secondOther) }
        if seconds <= 3600 { return up(60) == 60 ? self(.hourOne) : count(up(60), .minuteOne, .minuteOther) }
        if seconds <= 86_400 { return up(3600) == 24 ? self(.dayOne) : count(up(3600), .hourOne, .hourOther) }
        return count(up(86_400), .dayOne, .dayOther)
    }

    /// How long ago an instant was, or its date after a week.
    func elapsed(since instant: UnixTime, now: UnixTime) -> String {
        let seconds = max(now.seconds.subtractingReportingOverflow(instant.seconds).partialValue, 0)
        switch seconds {
        case ..<60: return self(.justNow)
        case ..<3600: return self(.ago, ["wait": count(seconds / 60, .minuteOne, .minuteOther)])
        case ..<86_400: return self(.ago, ["wait": count(seconds / 3600, .hourOne, .hourOther)])
        case ..<604_800: return self(.ago, ["wait": count(seconds / 86_400, .dayOne, .dayOther)])
        default: return date(instant)
        }
    }

    /// The date of an instant, in UTC.
    func date(_ instant: UnixTime) -> String {
        let date = CalendarDate(daysSince1970: instant.seconds / 86_400)
        let months = self(.months).split(separator: " ")
        let index = Int(date.month) - 1
        let month = months.indices.contains(index) ? String(months[index]) : ""
        return self(.date, ["year": String(date.year), "month": month, "day": String(date.day)])
    }

    private func count(_ count: Int64, _ one: WordKey, _ other: WordKey) -> String {
        count == 1 ? self(one) : self(other, ["count": String(count)])
    }
}
