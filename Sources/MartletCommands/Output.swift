private import CLinux
internal import MartletConfig
private import Synchronization

/// Standard output and error, unbuffered.
enum Output {
    /// The errno of the first failed write to standard output; 0 for none.
    private static let failure = Atomic<Int32>(0)

    static func line(_ text: String) {
        let number = SystemFile.write(Array((text.hasSuffix("\n") ? text : text + "\n").utf8), to: 1)
        if number != 0 { _ = failure.compareExchange(expected: 0, desired: number, ordering: .relaxed) }
    }

    static func error(_ text: String) { _ = SystemFile.write(Array(text.utf8), to: 2) }

    /// The first error of writing to standard output; `nil` if there was none, and where the reader has read enough.
    static var writeError: String? {
        let number = failure.load(ordering: .relaxed)
        return number == 0 || number == EPIPE ? nil : SystemFile.reason(number)
    }

    /// Prints diagnostics to standard error, sorted by position.
    static func report(_ diagnostics: Diagnostics) {
        for diagnostic in diagnostics.sorted { error(TerminalText.escaped(diagnostic.description) + "\n") }
    }
}

/// Escapes untrusted texts for a terminal.
enum TerminalText {
    /// The text with control and formatting characters written as `\x1b` or `\u{202e}`.
    static func escaped(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control: shown += "\\x" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            case .format, .lineSeparator, .paragraphSeparator: shown += "\\u{\(String(scalar.value, radix: 16))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// The text if it could be the name of a command or an option: a short word of letters, digits and hyphens.
    static func name(_ text: String) -> String? {
        let isName = text.utf8.allSatisfy {
            (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x5F
        }
        return isName && (1...32).contains(text.utf8.count) ? text : nil
    }
}
