internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP

/// What the access line of an exchange has that is gone when this ends; kept only where a plan needs it.
struct AccessNotes {
    /// As they stand in a line, without the quotation marks around them; empty if the request has none.
    private(set) var userAgent: [UInt8] = []
    private(set) var referer: [UInt8] = []
    /// Of the upstream's response; 0 without one.
    var status = 0
    /// How long the endpoint took for its head.
    var microseconds = 0

    init() {}

    /// Notes what a head says.
    init(_ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        for index in 0..<head.fields.count {
            let (name, value) = unsafe (bytes[head.fields[index].name], bytes[head.fields[index].value])
            if unsafe AccessNotes.equals(name, "user-agent") {
                userAgent = unsafe AccessNotes.escaped(value)
            } else if unsafe AccessNotes.equals(name, "referer") {
                var text = ByteBuffer()
                unsafe RejectedTarget.append(value, to: &text)
                referer = unsafe AccessNotes.escaped(text.bytes)
            }
        }
    }

    private static func equals(_ name: UnsafeBufferPointer<UInt8>, _ lowercase: StaticString) -> Bool {
        guard name.count == lowercase.utf8CodeUnitCount else { return false }
        return name.indices.allSatisfy { unsafe name[$0] | 0x20 == lowercase.utf8Start[$0] }
    }

    private static func escaped(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        unsafe ByteBuffer().appending(escaped: text, maximumBytes: 256).array
    }
}
