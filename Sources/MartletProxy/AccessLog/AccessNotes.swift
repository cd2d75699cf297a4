internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP

/// What access lines of one loop have of their requests that is gone when these end; kept only where a plan needs it.
struct AccessNotes {
    /// The notes of one exchange.
    struct Entry {
        fileprivate var owner = Handle<Exchange>.none
        /// As they stand in a line, without the quotation marks around them; empty if the request has none.
        fileprivate(set) var userAgent: [UInt8] = []
        fileprivate(set) var referer: [UInt8] = []
        /// Of the upstream's response; 0 without one.
        fileprivate(set) var status = 0
        /// How long the endpoint took for its head.
        fileprivate(set) var microseconds = 0
    }

    private static let maximumBytes = 256

    /// By the slots of the exchanges.
    private var entries: [Entry] = []

    /// Notes what a head says.
    mutating func note(
        _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>
    ) {
        let index = begin(exchange)
        for field in 0..<head.fields.count {
            let name = unsafe bytes[head.fields[field].name]
            if unsafe AccessNotes.equals(name, "user-agent") {
                entries[index].userAgent = unsafe AccessNotes.escaped(bytes[head.fields[field].value])
            } else if unsafe AccessNotes.equals(name, "referer") {
                var text = ByteBuffer()
                unsafe RejectedTarget.append(bytes[head.fields[field].value], to: &text)
                entries[index].referer = unsafe AccessNotes.escaped(text.bytes)
            }
        }
    }

    /// Notes what an upstream's response says.
    mutating func note(status: Int, microseconds: Int, of exchange: Handle<Exchange>) {
        let index = has(exchange) ? exchange.offset : begin(exchange)
        entries[index].status = status
        entries[index].microseconds = microseconds
    }

    /// The notes of an exchange, which may be empty.
    func entry(of exchange: Handle<Exchange>) -> Entry { has(exchange) ? entries[exchange.offset] : Entry() }

    /// Frees everything: no plan needs it any more.
    mutating func removeAll() { entries = [] }

    private func has(_ exchange: Handle<Exchange>) -> Bool {
        exchange.offset < entries.count && entries[exchange.offset].owner == exchange
    }

    private mutating func begin(_ exchange: Handle<Exchange>) -> Int {
        while entries.count <= exchange.offset { entries.append(Entry()) }
        entries[exchange.offset] = Entry(owner: exchange)
        return exchange.offset
    }

    private static func equals(_ name: UnsafeBufferPointer<UInt8>, _ lowercase: StaticString) -> Bool {
        guard name.count == lowercase.utf8CodeUnitCount else { return false }
        return name.indices.allSatisfy { unsafe name[$0] | 0x20 == lowercase.utf8Start[$0] }
    }

    /// A client's text without tokens of the gateway, as JSON has it: quotation marks and backslashes are escaped, bytes that are not printable ASCII
    /// become question marks, and what exceeds 256 bytes is cut.
    private static func escaped(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var escaped: [UInt8] = []
        for byte in unsafe OwnToken.masked(text).prefix(maximumBytes) {
            if byte == 0x22 || byte == 0x5C { escaped.append(0x5C) }
            escaped.append(byte < 0x20 || byte > 0x7E ? 0x3F : byte)
        }
        return escaped
    }
}
