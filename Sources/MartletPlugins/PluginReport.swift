/// What the process that loads a library for a trial says about it, one line each: a word, a space and a text.
package struct PluginReport: Equatable, Sendable {
    /// Why the dynamic loader refused the library.
    package var loadError: String?
    /// Symbols that neither the gateway nor another library defines; the first ones.
    package var undefined: [String] = []
    /// What ``PluginInspection`` says of the facts that its code returned.
    package var mismatch: String?
    /// The kinds of its providers.
    package var kinds: [String] = []
    /// Whether everything was said: the process was not ended by the library.
    package var isComplete = false

    package init() {}

    /// Parses what was written; lines that it does not know are skipped, since the library may write too.
    package init(_ bytes: [UInt8]) {
        for line in bytes.split(separator: 0x0A) {
            let parts = line.split(separator: 0x20, maxSplits: 1, omittingEmptySubsequences: false)
            guard let word = parts.first else { continue }
            let text = String(decoding: parts.dropFirst().first ?? [], as: UTF8.self)
            switch String(decoding: word, as: UTF8.self) {
            case "error": loadError = text
            case "undefined": undefined.append(text)
            case "mismatch": mismatch = text
            case "kind": kinds.append(text)
            case "end": isComplete = true
            default: continue
            }
        }
    }

    /// The form that is parsed.
    package var text: String {
        var lines: [String] = []
        if let loadError { lines.append("error \(Self.line(loadError))") }
        lines += undefined.map { "undefined \(Self.line($0))" }
        if let mismatch { lines.append("mismatch \(Self.line(mismatch))") }
        lines += kinds.map { "kind \(Self.line($0))" }
        return (lines + ["end", ""]).joined(separator: "\n")
    }

    private static func line(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
