/// Pending events, each with the range of its text.
struct EventQueue {
    struct Entry {
        let event: HTTP2Event
        let textStart: Int
        let textCount: Int
    }

    private var entries: [Entry] = []
    private var first = 0
    /// The text of the event that was dequeued last.
    private(set) var textStart = 0
    private(set) var textCount = 0

    var isEmpty: Bool { first == entries.count }

    mutating func enqueue(_ event: HTTP2Event, textStart: Int = 0, textCount: Int = 0) {
        entries.append(Entry(event: event, textStart: textStart, textCount: textCount))
    }

    mutating func dequeue() -> HTTP2Event? {
        guard first < entries.count else {
            if first > 0 {
                entries.removeAll(keepingCapacity: entries.count <= 256)
                first = 0
            }
            textCount = 0
            return nil
        }
        let entry = entries[first]
        first &+= 1
        textStart = entry.textStart
        textCount = entry.textCount
        return entry.event
    }
}
