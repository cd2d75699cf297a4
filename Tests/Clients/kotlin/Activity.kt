package android.app

open class Activity : android.content.Context() {
    open fun onNewIntent(intent: android.content.Intent) {}
}
