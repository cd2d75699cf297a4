internal import MartletCore

/// Pending events, each with the range of its text.
struct EventQueue {
    struct Entry {
        let event: HTTP2Event
        let textStart: Int
        let textCount: Int
        let offsetsStart: Int
        let offsetsCount: Int
    }

    private var entries: [Entry] = []
    private var first = 0
    /// The text of the event that was dequeued last.
    private(set) var textStart = 0
    private(set) var textCount = 0
    /// Its lines.
    private(set) var offsetsStart = 0
    private(set) var offsetsCount = 0

    var isEmpty: Bool { first == entries.count }

    mutating func enqueue(_ event: HTTP2Event) {
        entries.append(Entry(event: event, textStart: 0, textCount: 0, offsetsStart: 0, offsetsCount: 0))
    }

    /// Enqueues an event with the text that was written last.
    mutating func enqueue(_ event: HTTP2Event, _ writer: borrowing HeadWriter) {
        entries.append(
            Entry(
                event: event, textStart: writer.start, textCount: writer.text.count &- writer.start,
                offsetsStart: writer.offsetsStart, offsetsCount: writer.offsets.count &- writer.offsetsStart))
    }

    mutating func dequeue() -> HTTP2Event? {
        guard first < entries.count else {
            if first > 0 {
                entries.removeAll(keepingCapacity: entries.count <= 256)
                first = 0
            }
            textCount = 0
            offsetsCount = 0
            return nil
        }
        let entry = entries[first]
        first &+= 1
        textStart = entry.textStart
        textCount = entry.textCount
        offsetsStart = entry.offsetsStart
        offsetsCount = entry.offsetsCount
        return entry.event
    }
}
