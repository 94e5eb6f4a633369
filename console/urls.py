"""The pages' addresses."""

from django.urls import path

from console import pages

urlpatterns = [
    path("", pages.home, name="home"),
    path("login", pages.login, name="login"),
    path("login/<str:secret>", pages.login_link, name="login-link"),
    path("logout", pages.logout, name="logout"),
    path("workspace", pages.workspace, name="workspace"),
]
