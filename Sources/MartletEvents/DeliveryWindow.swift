/// The deliveries of one webhook that are being sent: at most one for each subject, and a limited number in all.
struct DeliveryWindow: Sendable {
    private let capacity: Int
    /// By the deliveries' numbers.
    private var subjects: [Int64: String] = [:]

    init(capacity: Int) { self.capacity = max(capacity, 1) }

    /// The number of deliveries that are being sent.
    var count: Int { subjects.count }
    /// The number of further ones that may be sent.
    var free: Int { max(capacity - subjects.count, 0) }

    /// Takes deliveries, without those that are being sent and without further ones of their subjects.
    /// - Parameter limit: how many to take at most.
    /// - Returns: the deliveries to send now.
    mutating func admit(_ due: [DueDelivery], atMost limit: Int) -> [DueDelivery] {
        var admitted: [DueDelivery] = []
        var busy = Set(subjects.values)
        for delivery in due where free > 0 && admitted.count < limit {
            guard busy.insert(delivery.event.subject).inserted else { continue }
            subjects[delivery.number] = delivery.event.subject
            admitted.append(delivery)
        }
        return admitted
    }

    /// Frees the place of a delivery.
    mutating func remove(_ number: Int64) { subjects[number] = nil }
}
