internal import MartletCore

/// A page with a message, rendered but for what differs between two responses: as cheap to send as any other error.
package struct PreparedMessage: Sendable {
    /// What is inserted.
    private enum Slot: CaseIterable {
        case requestID, nonce, wait

        /// Stands for it in the page; HTML does not escape it.
        var mark: String {
            switch self {
            case .requestID: "martlet-slot-request-id"
            case .nonce: "martlet-slot-nonce"
            case .wait: "martlet-slot-wait"
            }
        }
    }

    private enum Piece: Sendable {
        case bytes([UInt8])
        case slot(Int)
    }

    private let pieces: [Piece]
    private let words: Words

    /// - Parameter signIn: the path of the page for signing in; `nil` shows no link.
    package init(_ message: MessagePage.Message, of site: PageSite, in language: PageLanguage, signIn: String?) {
        var page = MessagePage(message, requestID: Slot.requestID.mark, signIn: signIn)
        page.wait = Slot.wait.mark
        let context = PageContext(
            site: site, choice: LanguageChoice(language), nonce: PageNonce(Slot.nonce.mark) ?? PageNonce())
        pieces = Self.pieces(of: page.render(in: context).bytes)
        words = context.words
    }

    /// The page of one response.
    /// - Parameter seconds: until the next attempt.
    package func render(requestID: String, seconds: Int64) -> RenderedPage {
        let nonce = PageNonce()
        let values = Slot.allCases.map { slot in
            switch slot {
            case .requestID: HTML.escape(requestID)
            case .nonce: nonce.text
            case .wait: words.wait(seconds: seconds)
            }
        }
        var bytes: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .bytes(let text): bytes += text
            case .slot(let index): bytes += Array(values[index].utf8)
            }
        }
        return RenderedPage(bytes: bytes, nonce: nonce, fields: PageFields.fields(nonce: nonce, formOrigins: []))
    }

    private static func pieces(of page: [UInt8]) -> [Piece] {
        let marks = Slot.allCases.map { Array($0.mark.utf8) }
        var pieces: [Piece] = []
        var (start, index) = (0, 0)
        while index < page.count {
            guard let slot = marks.firstIndex(where: { page[index...].starts(with: $0) }) else {
                index += 1
                continue
            }
            pieces += [.bytes(Array(page[start..<index])), .slot(slot)]
            index += marks[slot].count
            start = index
        }
        return pieces + [.bytes(Array(page[start...]))]
    }
}
