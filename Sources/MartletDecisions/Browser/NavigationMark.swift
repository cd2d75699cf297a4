/// Whether a person sees the response, and in which language.
@usableFromInline package struct NavigationMark {
    /// The index of the language and one; 0 for a request that is no navigation.
    @usableFromInline package var value: UInt8 = 0

    @inlinable package init() {}

    /// `nil` for a request that is no navigation.
    package var language: UInt8? { value == 0 ? nil : value &- 1 }

    /// The mark of a navigation whose page is in a language, by its index.
    package static func of(language: UInt8) -> NavigationMark {
        var mark = NavigationMark()
        mark.value = language &+ 1
        return mark
    }
}
