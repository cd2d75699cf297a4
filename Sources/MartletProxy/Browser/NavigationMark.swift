/// Whether a person sees the response, and in which language.
struct NavigationMark {
    /// The index of the language and one; 0 for a request that is no navigation.
    private var value: UInt8 = 0

    /// `nil` for a request that is no navigation.
    var language: UInt8? { value == 0 ? nil : value &- 1 }

    static func of(language: UInt8) -> NavigationMark {
        var mark = NavigationMark()
        mark.value = language &+ 1
        return mark
    }
}
