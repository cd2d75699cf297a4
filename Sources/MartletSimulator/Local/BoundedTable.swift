/// Values by name, of which the oldest are dropped when there are too many. Names are compared by their bytes.
struct BoundedTable<Value: Sendable>: Sendable {
    private let capacity: Int
    private var values: [[UInt8]: Value] = [:]
    private var order: [[UInt8]] = []
    private var oldest = 0

    init(capacity: Int) { self.capacity = capacity }

    subscript(name: String) -> Value? { values[Array(name.utf8)] }

    /// Inserts a value, or replaces the one with that name, which keeps its age.
    mutating func insert(_ value: Value, as name: String) {
        let name = Array(name.utf8)
        guard values.updateValue(value, forKey: name) == nil else { return }
        guard values.count > capacity else { return order.append(name) }
        // The order is a ring once the table is full.
        values[order[oldest]] = nil
        order[oldest] = name
        oldest = (oldest &+ 1) % capacity
    }

    /// Changes a value in place, if there is one with that name.
    mutating func update(_ name: String, _ change: (inout Value) -> Void) {
        let name = Array(name.utf8)
        guard var value = values[name] else { return }
        change(&value)
        values[name] = value
    }
}
