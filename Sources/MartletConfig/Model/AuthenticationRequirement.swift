/// `max_age` and `acr` in `authorize`: how recently, and at which level, the caller has to have authenticated.
@frozen package struct AuthenticationRequirement: Sendable, Equatable {
    /// A condition with its index in `authorize`, from 0.
    @frozen package struct Entry<Value: Sendable & Equatable>: Sendable, Equatable {
        package let value: Value
        package let index: Int

        package init(value: Value, index: Int) {
            self.value = value
            self.index = index
        }
    }

    package var maximumAge: Entry<Duration>?
    package var level: Entry<String>?

    package init(maximumAge: Entry<Duration>? = nil, level: Entry<String>? = nil) {
        self.maximumAge = maximumAge
        self.level = level
    }

    package var isEmpty: Bool { maximumAge == nil && level == nil }
}
